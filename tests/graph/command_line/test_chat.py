"""``daruma chat`` on a real terminal: tasks, questions, commands, keys, and what it refuses."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.daruma_command import DONE, PLAN, Daruma, command
from tests.screen import widths
from tests.terminal import Terminal

CTRL_C, CTRL_D, ALT_ENTER, TAB = "\x03", "\x04", "\x1b\r", "\t"
READY = "\x1b[J\x1b[0;2m  t · "
"""A line to type on is drawn for the first time, while nothing is at work."""

ONE, TWO = {"say": "The first is done."}, {"say": "The second is done."}


def chat(daruma: Daruma, *options: str, script: dict[str, Any] | None = None, **how: Any) -> Any:
    """Start a chat on thread ``t`` and wait until a line can be typed."""
    model = daruma.script(**(script or {"main": [ONE, TWO]}))
    terminal = Terminal(daruma, "chat", "--thread", "t", "--model", model, *options, **how)
    terminal.wait_for(READY)
    return terminal


def say(terminal: Terminal, line: str, told: str = READY) -> None:
    """Type a line, and wait for what comes of it."""
    terminal.type(line)
    terminal.wait_for(told, anew=True)


def leave(terminal: Terminal) -> int:
    """Leave with Ctrl-D, and return the exit code."""
    terminal.press(CTRL_D)
    return terminal.end()


def goals(daruma: Daruma) -> list[str]:
    """What the thread's tasks were to do."""
    moments = daruma("show", "t", "--json").json["timeline"]["moments"]
    return [each["detail"] for each in moments if each["kind"] == "request"]


@pytest.mark.long
def test_each_line_is_a_task_of_one_thread(daruma: Daruma) -> None:
    """FA-04: answers are told whole; at the end the way back is named, and the exit code is 0."""
    terminal = chat(daruma, "--workspace", "ws")
    say(terminal, "Do the first")
    say(terminal, "")
    say(terminal, "Do the second")

    code = leave(terminal)

    shown = "\n".join(terminal.screen.shown)
    assert code == 0
    assert shown.index("The first is done.") < shown.index("▸ Do the second")
    assert "The second is done." in shown
    assert shown.count("Do the first") == 1
    assert shown.rstrip().endswith("go on with daruma chat --thread t")
    assert goals(daruma) == ["Do the first", "Do the second"]
    assert daruma("show", "t", "--json").json["workspace"] == str(daruma.folder / "ws")


@pytest.mark.long
def test_a_paste_is_one_task(daruma: Daruma) -> None:
    """So is what Alt-Enter breaks into lines; two slashes begin a line with one."""
    terminal = chat(daruma)
    terminal.press("\x1b[200~one\ntwo é 数\n\x1b[201~")
    say(terminal, "three")
    terminal.press(f"//four{ALT_ENTER}")
    say(terminal, "five")

    assert leave(terminal) == 0
    assert goals(daruma) == ["one\ntwo é 数\nthree", "/four\nfive"]


@pytest.mark.long
def test_what_is_typed_before_there_is_a_line_is_not_sent(daruma: Daruma) -> None:
    """A paste that comes too early stands in the line, whole."""
    terminal = Terminal(daruma, "chat", "--thread", "t", "--model", daruma.script(main=[ONE]))
    terminal.press("one\ntwo 数\nthree")
    terminal.wait_for(READY)
    say(terminal, "")

    assert leave(terminal) == 0
    assert goals(daruma) == ["one\ntwo 数\nthree"]


# --- Questions are asked in place, as `daruma run` does on a terminal.


def test_questions_are_answered_in_place(daruma: Daruma) -> None:
    """A review and an approval; a sentence that begins with the letter of a choice is none."""
    script = {"plan": [PLAN], "main": [{"calls": [command("touch made")]}, DONE]}
    terminal = chat(daruma, "--workspace", "ws", script=script)

    say(terminal, "/plan Make it", "[c]onfirm")
    say(terminal, "can it be blue", "[c]onfirm")
    say(terminal, "confirm", "[a]pprove")
    say(terminal, "add a test too", "[a]pprove")
    assert not (daruma.folder / "ws" / "made").exists()
    say(terminal, "a")

    assert leave(terminal) == 0
    assert (daruma.folder / "ws" / "made").exists()
    assert daruma("show", "t", "--json").json["mode"] == "plan_exec"


def test_a_question_left_open_is_asked_before_the_next_task(daruma: Daruma) -> None:
    """The line that was typed waits meanwhile."""
    terminal = chat(
        daruma, "--workspace", "ws", script={"main": [{"calls": [command("touch made")]}, ONE, TWO]}
    )
    say(terminal, "Make it", "[a]pprove")
    say(terminal, "l")
    say(terminal, "Something else", "[a]pprove")
    say(terminal, "a")
    say(terminal, "")

    assert leave(terminal) == 0
    assert goals(daruma) == ["Make it", "Something else"]


# --- While a task is at work.


@contextmanager
def at_work(daruma: Daruma, *turns: dict[str, Any], **how: Any) -> Iterator[tuple[Terminal, int]]:
    """A chat whose task waits in a command until something is written to a pipe."""
    go = daruma.folder / "ws" / "go"
    os.mkfifo(go)
    daruma.configure("tools: {policy: {run_command: allow, str_replace_editor: confirm}}\n")
    wait = {"calls": [command("read line < go; echo $line")]}
    script = {"main": [wait, *(turns or (ONE, TWO))]}
    terminal = chat(daruma, "--workspace", "ws", script=script, **how)
    pipe = os.open(go, os.O_RDWR)  # what is written waits for whoever reads
    say(terminal, "Wait", "$ read line")
    yield terminal, pipe
    os.close(pipe)


def let_go(pipe: int) -> None:
    """Let the command end."""
    os.write(pipe, b"went\n")


@pytest.mark.long
def test_what_goes_on_stands_above_the_line(daruma: Daruma) -> None:
    """And is gone at the end; what was typed and not sent is still there."""
    with at_work(daruma, columns=70) as (terminal, pipe):
        terminal.press("half a li")
        terminal.wait_for("half a li", anew=True)
        *panel, line = terminal.screen.shown[-4:]
        let_go(pipe)
        terminal.wait_for(READY, anew=True)
        terminal.press("ne")
        terminal.wait_for("ne", anew=True)
        kept = terminal.screen.shown[-1]
        terminal.press(CTRL_C)
        code = leave(terminal)

    assert line == "▸ half a li"
    assert ["react · Wait" in panel[0], "think" in panel[1], "$ read line" in panel[2]] == [
        True
    ] * 3
    assert (code, kept) == (0, "▸ half a line")
    assert not any("50" in each for each in terminal.screen.shown)
    assert terminal.screen.cursor_shown


def test_ctrl_c_stops_the_task_and_not_the_talk(daruma: Daruma) -> None:
    """It ends as `daruma run` does, can be gone on with here, and the next task is another."""
    with at_work(daruma) as (terminal, pipe):
        terminal.press(CTRL_C)
        terminal.wait_for(READY, anew=True)
        cancelled = "Cancelled" in terminal.seen
        terminal.type("/resume")
        terminal.wait_for("read line", anew=True)
        let_go(pipe)
        terminal.wait_for("The first is done.", anew=True)
        terminal.wait_for(READY, anew=True)
        say(terminal, "Next")

        assert (leave(terminal), cancelled) == (0, True)
    assert goals(daruma) == ["Wait", "Next"]


def test_leaving_in_the_midst_says_what_becomes_of_it(daruma: Daruma) -> None:
    """The second Ctrl-D stops the task and leaves; the thread is gone on with in another chat."""
    with at_work(daruma) as (terminal, pipe):
        terminal.press(CTRL_D)
        terminal.wait_for("a task is at work", anew=True)
        code = leave(terminal)
        assert daruma("show", "t", "--json").json["status"] == "unfinished"

        again = Terminal(daruma, "chat", "--thread", "t")
        again.wait_for("Go on with it?")
        again.type("y")
        again.wait_for("read line", anew=True)
        let_go(pipe)
        again.wait_for(READY)

    assert (code, leave(again)) == (0, 0)
    assert daruma("show", "t", "--json").json["status"] == "completed"


@pytest.mark.long
def test_a_line_while_it_works_is_told_to_the_task(daruma: Daruma) -> None:
    """So is a goal, and what is typed once it was stopped, which goes on with it."""
    with at_work(daruma) as (terminal, pipe):
        say(terminal, "Use tabs", "it is told")
        terminal.press(CTRL_C)
        terminal.wait_for(READY, anew=True)
        terminal.type("Be brief")
        terminal.wait_for("read line", anew=True)
        say(terminal, "/goal Wait well", "it is told")
        let_go(pipe)
        terminal.wait_for(READY, anew=True)

        assert leave(terminal) == 0
    shown = "\n".join(terminal.screen.shown)
    told = [shown.index(f"a person says: {each}") for each in ("Use tabs", "Be brief", "Wait well")]
    assert told == sorted(told)
    assert daruma("show", "t", "--json").json["goal"] == "Wait well"


@pytest.mark.long
def test_a_stop_asks_in_place(daruma: Daruma) -> None:
    """After the step, before the next request; the answer goes on with the task."""
    with at_work(daruma) as (terminal, pipe):
        say(terminal, "/stop", "it stops before")
        let_go(pipe)
        terminal.wait_for("(empty: later)", anew=True)
        say(terminal, "Go on", "The first is done.")
        terminal.wait_for(READY, anew=True)

        assert leave(terminal) == 0


def test_a_half_typed_line_answers_no_question(daruma: Daruma) -> None:
    """It is ended first, and is there again afterwards."""
    args = {"command": "create", "path": "made", "file_text": "x"}
    asks = {"calls": [{"name": "str_replace_editor", "args": args}]}
    with at_work(daruma, asks, ONE) as (terminal, pipe):
        terminal.press("a b")
        terminal.wait_for("a b", anew=True)
        let_go(pipe)
        terminal.wait_for("it asks something")
        say(terminal, "c", "[a]pprove")
        say(terminal, "d", "Why not")
        say(terminal, "")
        terminal.press("d")
        terminal.wait_for("d", anew=True)

        assert terminal.screen.shown[-1] == "▸ a bcd"
        terminal.press(CTRL_C)
        assert leave(terminal) == 0
    assert not (daruma.folder / "ws" / "made").exists()


@pytest.mark.long
def test_commands_that_look_are_there_while_it_works(daruma: Daruma) -> None:
    """What puts files back waits; so does a plan, which stands in the line afterwards."""
    with at_work(daruma) as (terminal, pipe):
        say(terminal, "/budget", "think 1 of 50")
        terminal.wait_for("▸", anew=True)
        say(terminal, "/context", "an estimate")
        terminal.wait_for("▸", anew=True)
        say(terminal, "/show", "Timeline")
        terminal.wait_for("read line", anew=True)
        say(terminal, "/undo", "an undo waits")
        say(terminal, "/plan Another", "that waits until nothing is at work")
        let_go(pipe)
        terminal.wait_for(READY, anew=True)
        terminal.wait_for("▸ /plan Another", anew=True)
        terminal.press(CTRL_C)

        assert leave(terminal) == 0


@pytest.mark.long
def test_killed_in_the_midst_it_is_offered_again(daruma: Daruma) -> None:
    """``kill -9``: with a no, the next line goes to a prompt as ever."""
    with at_work(daruma) as (terminal, _):
        terminal.process.kill()
        assert terminal.end() == -signal.SIGKILL

    again = Terminal(daruma, "chat", "--thread", "t")
    again.wait_for("Go on with it?")
    say(again, "n")
    assert leave(again) == 0


@pytest.mark.long
@pytest.mark.parametrize("working", [False, True])
def test_a_polite_kill_ends_the_talk(daruma: Daruma, *, working: bool) -> None:
    """With its exit code, and the cursor back."""
    with at_work(daruma) as (terminal, pipe):
        if not working:
            let_go(pipe)
            terminal.wait_for(READY, anew=True)
        terminal.process.send_signal(signal.SIGTERM)

        assert terminal.end() == 143
    assert terminal.screen.cursor_shown


# --- Commands.


@pytest.mark.long
def test_each_command_is_one_of_the_command_line(daruma: Daruma) -> None:
    """What they say; a mistake is one line, and the talk goes on."""
    terminal = chat(daruma, "--workspace", "ws", columns=200)
    said = {
        "/budget": "nothing is spent yet",
        "/plan": "there is no plan",
        "/context": "nothing has begun",
        "/stop": "✗",
        "/resume": "nothing has begun",
        "/mode": "mode auto",
        "/mode plan_exec": "mode plan_exec",
        "/mode mode": "there is no mode 'mode': auto, direct_chat",
        "/mode auto": "mode auto",
        "/model": "script.json",
        "/model nobody:knows": "nobody",
        "/modle": "there is no /modle: did you mean /mode?",
        "/": "there is no /:",
        "/undo --nonsense": "No such option: --nonsense",
        "Do it": "The first is done.",
        "/show --tail 1": "Timeline",
        "/undo --list": "before Do it",
        "/threads": "completed, not checked",
        "/help": "Leave; the thread stays.",
    }
    for line, told in said.items():
        say(terminal, line, told)
        terminal.wait_for(READY, anew=True)
    terminal.press(f"/thr{TAB}")
    terminal.wait_for("/threads", anew=True)
    terminal.type("")
    terminal.wait_for(READY, anew=True)

    say(terminal, "/quit", "go on with")

    assert terminal.end() == 0
    assert "Traceback" not in terminal.seen
    assert "this is a bug" not in terminal.seen


@pytest.mark.long
def test_the_window_is_told_as_elsewhere(daruma: Daruma) -> None:
    """CX-08: each part, and the sum; as ``daruma show --context`` does."""
    terminal = chat(daruma)
    say(terminal, "Do it")
    say(terminal, "/context", "an estimate")
    terminal.wait_for(READY, anew=True)
    assert leave(terminal) == 0

    usage = daruma("show", "t", "--context", "--json").json
    said = [each.split() for each in terminal.screen.shown]
    for part, tokens in (usage["parts"] | {"all": usage["tokens"]}).items():
        assert any(each[:-3] == part.split() and each[-3] == f"{tokens:,}" for each in said), part


@pytest.mark.long
def test_undo_asks_and_puts_the_files_back(daruma: Daruma) -> None:
    """As `daruma undo` does."""
    daruma.configure("tools: {policy: {run_command: allow}}\n")
    script = {"main": [{"calls": [command("echo x > made")]}, ONE]}
    terminal = chat(daruma, "--workspace", "ws", script=script)
    say(terminal, "Make it")
    assert (daruma.folder / "ws" / "made").exists()
    say(terminal, "/undo", "Put the files back?")
    say(terminal, "y")

    assert leave(terminal) == 0
    assert not (daruma.folder / "ws" / "made").exists()


@pytest.mark.long
def test_the_next_task_has_the_model_that_was_named(daruma: Daruma) -> None:
    """That of the thread is known to a later chat, too."""
    terminal = chat(daruma)
    (daruma.folder / "other.json").write_text('{"main": [{"say": "Another one."}]}')
    say(terminal, "/model scripted:other.json")
    say(terminal, "Do it", "Another one.")
    terminal.wait_for(READY, anew=True)

    assert leave(terminal) == 0
    assert daruma("show", "t", "--json").json["model"].endswith("/other.json")


def test_a_task_that_fails_is_told_and_the_talk_goes_on(daruma: Daruma) -> None:
    """Its headline; the exit code of a talk is 0."""
    gives_up = {"json": {"strategy": "give-up", "confidence": 1.0}}
    terminal = chat(
        daruma, script={"main": [{"raise": "out of order"}, TWO], "recovery": [gives_up]}
    )
    say(terminal, "Do it", "The task ended as failed: out of order")
    terminal.wait_for(READY, anew=True)
    say(terminal, "Again", "The second is done.")
    terminal.wait_for(READY, anew=True)

    assert leave(terminal) == 0


# --- Terminals.


@pytest.mark.long
def test_it_fits_a_narrow_terminal(daruma: Daruma) -> None:
    """Nothing is wider than the terminal is, also once it has become narrower; no colours."""
    daruma.setenv("NO_COLOR", "1")
    with at_work(daruma, columns=44, rows=12) as (terminal, pipe):
        terminal.resize(30, 12)
        terminal.press("数える 🎉")
        terminal.wait_for("数える 🎉", anew=True)
        terminal.wait_for("…", anew=True)
        let_go(pipe)
        terminal.wait_for(READY, anew=True)
        terminal.press(CTRL_C)
        narrow = terminal.screen.shown[-2:]
        code = leave(terminal)

    assert code == 0
    assert max(widths(narrow)) < 30
    assert not re.search(r"\x1b\[[\d;]*\b[349][0-7]\b[\d;]*m", terminal.seen)


@pytest.mark.long
def test_a_dumb_terminal_is_written_to_plainly(daruma: Daruma) -> None:
    """No code at all; tasks, commands and Ctrl-D are as elsewhere."""
    model = daruma.script(main=[ONE, TWO])
    terminal = Terminal(daruma, "chat", "--thread", "t", "--model", model, kind="dumb")
    terminal.wait_for("> ")
    for line, told in {"Do it": "The first is done.", "/mode": "mode auto", "": "> "}.items():
        say(terminal, line, told)
        terminal.wait_for("\n> ", anew=True)

    assert leave(terminal) == 0
    assert "\x1b" not in terminal.seen


# --- What it refuses.


def test_what_can_not_be_talked_about_is_said_before_anything(
    daruma: Daruma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, exit code 2: no terminal, no package, JSON."""
    assert "use `daruma run GOAL`" in daruma("chat").complaint
    assert "No such option: --json" in daruma("chat", "--json").complaint
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    monkeypatch.delitem(sys.modules, "daruma.graph.command_line._chat", raising=False)
    assert "pip install 'daruma-agent[chat]'" in daruma("chat").complaint


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--workspace", "nope"), "'nope' is not a folder"),
        (("--mode", "fast"), "'fast' is none of direct_chat, react"),
        (("--thread", "-x"), "can not be used"),
        (("--model", "nobody:knows"), "nobody"),
        ((), "no model is configured"),
    ],
)
def test_what_can_not_be_used_is_said_at_once(
    daruma: Daruma, options: tuple[str, ...], told: str
) -> None:
    """One line, exit code 2."""
    terminal = Terminal(daruma, "chat", *options, columns=300)

    assert terminal.end() == 2
    (line,) = terminal.seen.splitlines()
    assert line.startswith("daruma: ")
    assert told in line


def test_without_a_database_it_says_so(daruma: Daruma) -> None:
    """One line, exit code 2."""
    daruma.setenv("DARUMA_POSTGRES_URL", "postgresql://127.0.0.1:1/none")
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")
    terminal = Terminal(daruma, "chat", "--model", daruma.script(main=[ONE]), columns=300)

    assert terminal.end() == 2
    assert len(terminal.seen.splitlines()) == 1


@pytest.mark.long
def test_untrusted_settings_are_asked_about_first(daruma: Daruma) -> None:
    """SE-02: also those that came while it talks; with a no, the line is there to be sent again."""
    (daruma.folder / "daruma.yaml").write_text("tools: {policy: {run_command: allow}}\n")
    model = daruma.script(main=[ONE])
    terminal = Terminal(daruma, "chat", "--thread", "t", "--model", model)
    terminal.wait_for("Trust exactly this?")
    say(terminal, "y")
    (daruma.folder / "daruma.yaml").write_text("tools: {policy: {commit: allow}}\n")
    say(terminal, "Do it", "Trust exactly this?")
    say(terminal, "n")
    terminal.wait_for("▸ Do it", anew=True)
    say(terminal, "", "Trust exactly this?")
    say(terminal, "y", "The first is done.")
    terminal.wait_for(READY, anew=True)

    assert leave(terminal) == 0


@pytest.mark.long
def test_a_second_chat_on_a_thread_at_work_is_told_so(daruma: Daruma) -> None:
    """On one line, and can be typed on: that is told to what is at work."""
    with at_work(daruma) as (terminal, pipe):
        second = Terminal(daruma, "chat", "--thread", "t", columns=300)
        second.wait_for("Go on with it?")
        say(second, "y")
        say(second, "Me too")
        assert leave(second) == 0
        assert second.seen.count("✗") == 2
        assert second.seen.count("it is told with its next request") == 1
        let_go(pipe)
        terminal.wait_for(READY, anew=True)

        assert leave(terminal) == 0
    assert goals(daruma) == ["Wait"]
    assert "a person says: Me too" in "\n".join(terminal.screen.shown)


@pytest.mark.long
def test_a_line_that_is_not_taken_stands_there_again(daruma: Daruma) -> None:
    """As where another run works in the workspace."""
    with at_work(daruma) as (terminal, pipe):
        named = ("--thread", "u", "--workspace", "ws", "--model", "scripted:script.json")
        second = Terminal(daruma, "chat", *named, columns=300)
        second.wait_for("u · auto")
        say(second, "Me too", "works in")
        second.wait_for("u · auto", anew=True)
        second.press("!")
        second.wait_for("!", anew=True)
        assert second.screen.shown[-1] == "▸ Me too!"
        second.press(CTRL_C)
        assert leave(second) == 0
        let_go(pipe)
        terminal.wait_for(READY, anew=True)

        assert leave(terminal) == 0
