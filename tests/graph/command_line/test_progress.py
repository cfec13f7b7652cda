"""Live progress: every event has its say, and no text from outside reaches the terminal raw."""

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from io import StringIO
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text
from tests.daruma_command import DONE, Daruma, command
from tests.parts import a_call, a_phase, a_plan, a_state, a_task, taken
from tests.screen import Screen
from tests.terminal import Terminal

from daruma.graph.command_line._messages import one_line, shown
from daruma.graph.command_line._moment_lines import lines_of
from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._progress import Progress, bar, in_words, spent_of
from daruma.state.events import EVENTS, CallRefused
from daruma.state.steps import ArgumentRepair, Audit, ContextCost, LeftOut, NameChange
from daruma.state.text import reveal_invisible
from daruma.state.usage import Attempt, Failover

NASTY = "[red]x[/red] \x1b[31m\x1b]0;title\x07 \x9b2J \u202egnp.exe \ud800 a\r\nb \r c \x00"

SILENT = {
    "approval_request", "clarification_request", "command_output", "model_call_started",
    "model_text",    "question_closed", "question_request", "recovery_request", "run_stopped",
    "spec_review_request", "task_completed", "tool_started",
}  # fmt: skip
"""Events that are seen in the picture below the lines, or in the summary at the end."""

SPECIAL: Mapping[str, Any] = {
    "fallen": ("p2",),
    "commands": ("pytest",),
    "exit_code": 1,
    "seconds": 1.5,
    "number": 1,
    "of": 2,
    "decision": "confirm",
    "passed": False,
    "timed_out": False,
    "ok": False,
    "attempt": 1,
    "wait": 2.0,
    "status": 503,
    "confidence": 0.6,
    "input_tokens": 1,
    "output_tokens": 1,
    "spent": 2.0,
    "limit": 1.0,
    "more": 1.0,
    "exact": False,
    "total": 2,
}


def an_event(kind: str, text: str) -> dict[str, Any]:
    """An event of this kind whose texts are all ``text``."""
    phase = a_phase("p1", "p0", title=text, instructions=text, rollback_command=text)
    audit = Audit(
        message_id="m",
        names=(NameChange(tool_call_id=text, requested_name="x", name=text, how="alias"),),
        arguments=(
            ArgumentRepair(tool_call_id=text, name="pay", repaired_by="rules", rungs=(text,)),
        ),
        left_out=LeftOut(total=2, executed=1, omitted=1, limit=1, names=(text,)),
        failover=Failover(
            requested=text, attempts=(Attempt(model=text, error=text, then="again"),)
        ),
    )
    special = {
        **SPECIAL,
        "audit": audit.to_dict(),
        "progress": {"percent": 50, "reasoning": text},
        "parameters": {text: text},
        **dict.fromkeys(("paths", "left", "conflicts"), (text,)),
        "cost": ContextCost(
            node="main", budget=3, before=9, after=2, saved={"summarise": 7}, messages=4, by="rules"
        ).to_dict(),
        "args": {text: text},
        "question": {"question": text, "approvals": ()},
        "plan": {"id": "p", "goal": text, "phases": [phase.to_dict()]},
    }
    names = (field.name for field in fields(EVENTS[kind]))
    return {"type": kind, **{name: special.get(name, text) for name in names}}


def printed(
    paper_width: int = 80, *, terminal: bool = False, **options: Any
) -> tuple[Paper, StringIO]:
    file = StringIO()
    console = Console(
        file=file, width=paper_width, force_terminal=terminal, highlight=False, **options
    )
    return Paper(console), file


@pytest.mark.parametrize("kind", EVENTS)
def test_every_event_says_something_or_is_known_to_be_silent(kind: str) -> None:
    """A new event that nobody thought of how to show fails here."""
    assert bool(lines_of(an_event(kind, "text"))) is (kind not in SILENT)


@pytest.mark.parametrize("kind", EVENTS)
def test_no_event_can_obey_its_text(kind: str) -> None:
    """Markup is shown as it is, and every control character is spelled."""
    paper, file = printed()

    with Progress(paper) as progress:
        progress.see("custom", an_event(kind, NASTY))

    assert not set(file.getvalue()) & set("\x1b\x07\x9b\u202e\ud800\r\x00")
    assert file.getvalue().count("red]") == 2 * file.getvalue().count("[red]x[/red]")


@given(st.text())
def test_shown_text_is_printable_line_by_line(text: str) -> None:
    """Whatever a text holds, only line ends and visible characters are left of it."""
    for line in shown(text).split("\n"):
        assert all(char.isprintable() or char.isspace() for char in line)
        assert "\r" not in line


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Co", "Cn"]))
)
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    """In any language."""
    assert shown(text) == text


@given(st.text())
def test_what_was_revealed_is_shown_as_it_is(text: str) -> None:
    """An approval and the paper it is printed on agree on what is visible."""
    assert shown(reveal_invisible(text)) == reveal_invisible(text).replace("\t", "    ")


def test_a_line_is_cut_to_its_limit() -> None:
    """With a mark that it was."""
    assert one_line("a\nb   c", 10) == "a b c"
    assert one_line("a" * 20, 10) == "a" * 9 + "…"


def test_a_narrow_terminal_is_never_overrun() -> None:
    """At 60 columns long texts are wrapped under themselves."""
    paper, file = printed(60, terminal=True)

    paper.put(Line("words", "word " * 40), Line("bad", "x" * 130))

    lines = [Text.from_ansi(line).plain for line in file.getvalue().splitlines()]
    assert max(map(len, lines)) <= 60
    assert all(line.startswith(("  “ ", "  ✗ ", "    ")) for line in lines)


async def test_a_terminal_shows_what_is_going_on_and_clears_it_away() -> None:
    """The spinner with its text and the budget are drawn below, and gone at the end."""
    paper, file = printed(60, terminal=True)

    with Progress(paper) as progress:
        progress.see("values", {"task": a_task(verify=True), "steps": taken("think")})
        progress.see("custom", an_event("model_call_started", "main"))
        await progress.over(asyncio.sleep(0))
        drawn = file.getvalue()

    assert "main asks main" in drawn
    assert "1/3" in drawn
    left = Screen().write(file.getvalue())
    assert ("".join(left.shown), left.cursor_shown) == ("", True)


def test_an_ascii_output_gets_ascii_symbols() -> None:
    """Where the output's encoding has no check marks, none are sent."""

    class Ascii(StringIO):
        encoding = "ascii"

    file = Ascii()
    paper = Paper(Console(file=file, force_terminal=False))

    paper.put(Line("ok", "done"), Line("bad", "failed"), Line("head", "Next"))

    assert file.getvalue().isascii()


def test_a_tool_s_line_says_what_it_did() -> None:
    """The call's title comes from the model's own message, the outcome from the event."""
    args = {"command": "str_replace", "path": "a.py", "old_str": "x - y", "new_str": "x + y"}
    call = a_call(name="str_replace_editor", args=args)
    started = an_event("tool_started", "") | {"call_id": "c1", "tool": "str_replace_editor"}
    ended = started | {"type": "tool_completed", "ok": True, "seconds": 0.0, "output": ""}
    paper, file = printed()

    with Progress(paper) as progress:
        progress.see("values", {"calls": (call,)})
        progress.see("custom", started)
        progress.see("custom", ended)

    assert file.getvalue() == "  ✓ str_replace a.py\n    - x - y\n    + x + y\n"


def test_a_call_that_is_not_run_is_told() -> None:
    """No event begins one that the policy denies; one of a member is told with the member."""
    args, reason = {"command": "rm x"}, "denied by policy: no"
    refused = CallRefused(call_id="c1", tool="run_command", args=args, reason=reason)
    paper, file = printed()

    with Progress(paper) as progress:
        progress.see("custom", refused.to_dict())
        progress.see("custom", replace(refused, member="p1").to_dict())

    told = "$ rm x\n      denied by policy: no\n"
    assert file.getvalue() == f"  ✗ {told}  ✗ p1: {told}"


def test_a_call_is_told_by_whose_it_is() -> None:
    """Models of members use ids that the task's own has used; an approval says what was asked."""
    asked = [{"approval_id": "c1", "tool": "run_command", "args": {"command": "rm y"}}]
    request = an_event("approval_request", "") | {"question": {"approvals": asked}}
    ended = an_event("approval_completed", "") | {"approval_id": "c1", "decision": "deny"}
    paper, file = printed()

    with Progress(paper) as progress:
        progress.see("values", {"calls": (a_call(name="run_command", args={"command": "rm x"}),)})
        progress.see("custom", request | {"member": "p1"})
        progress.see("custom", ended | {"member": "p1"})
        progress.see("custom", ended)

    told = "May this run: $ rm {} denied\n"
    assert file.getvalue() == f"  ✗ p1: {told.format('y')}  ✗ {told.format('x')}"


def test_an_aside_is_made_once_before_its_event() -> None:
    """The demo explains a thing when it happens for the first time."""
    paper, file = printed()
    event = an_event("reflected", "I see.")

    with Progress(paper, {"reflected": "Now it thinks."}) as progress:
        progress.see("custom", event)
        progress.see("custom", event)

    assert file.getvalue().count("Now it thinks.") == 1
    assert file.getvalue().index("Now it thinks.") < file.getvalue().index("I see.")


def test_the_budget_is_that_of_the_current_phase() -> None:
    """Spent steps of other phases do not count against it (BU-03)."""
    state = a_state(
        task=a_task("plan_exec", verify=True),
        plan=a_plan(a_phase("p1"), a_phase("p2"), current="p2"),
        steps=[*taken("think", "verify", phase="p1"), *taken("think", "think", phase="p2")],
    )

    spent = spent_of(vars(state))

    assert in_words(spent) == "think 2 of 3, verify 0 of 2, reflect 0 of 1"
    assert bar(spent).plain == "  think ▰▰▱ 2/3  verify ▱▱ 0/2  reflect ▱ 0/1"


def test_a_long_budget_is_drawn_in_ten_blocks() -> None:
    """Whatever the limit, and also when nothing may be spent at all."""
    task = a_task(limits={"think": 40, "verify": 0}, verify=True)

    drawn = bar(spent_of({"task": task, "steps": taken("think")}), ascii_only=True).plain

    assert drawn == "  think #......... 1/40  verify  0/0  reflect . 0/1"


def test_a_check_without_tests_is_told_as_it_is_taken() -> None:
    """Its exit code is not 0, and it is none that failed: nothing on the screen may say so."""
    event = an_event("command_run", "pytest") | {"purpose": "verification", "exit_code": 5}
    known = {"stopped_by": "", "timed_out": False, "seconds": 0.0, "note": "there are no tests"}

    (passed,) = lines_of(event | known | {"passed": True})
    (failed, *_) = lines_of(event | known | {"passed": False})

    assert (passed.mark, passed.tail) == ("ok", "exit 5; there are no tests; sandbox pytest")
    assert (failed.mark, failed.tail) == ("bad", passed.tail)


# --- A run on a real terminal: what it shows while it goes on, and what it leaves behind.

PLAN = {
    "json": {
        "phases": [
            {"id": "p1", "title": "Look", "instructions": "Look."},
            {
                "id": "p2",
                "title": "数える 🎉",
                "depends_on": ["p1"],
                "rollback_command": "git stash",
            },
        ]
    }
}


@contextmanager
def hanging(daruma: Daruma, columns: int = 60) -> Iterator[tuple[Terminal, IO[str]]]:
    """A run whose command has written a line, and ends when something is written to it."""
    go = daruma.folder / "ws" / "go"
    os.mkfifo(go)
    says = "echo first; printf 'half .....'; read line < go; echo $line"
    model = daruma.script(plan=[PLAN], main=[{"calls": [command(says)]}, DONE, DONE])
    terminal = Terminal(
        daruma, "run", "Count", "--workspace", "ws", "--mode", "plan_exec", "--model", model,
        "--thread", "t", "--yes", columns=columns,
    )  # fmt: skip
    terminal.wait_for("│ half .....")
    with go.open("w") as pipe:
        yield terminal, pipe


def test_a_run_is_shown_while_it_goes_on(daruma: Daruma) -> None:
    """Goal, phases, budget, the call and what it has written; all of that is gone at the end."""
    with hanging(daruma, columns=70) as (terminal, pipe):
        panel = terminal.screen.shown[-7:]
        pipe.write("go\n")
    code = terminal.end()

    text = "\n".join(panel)
    for told in ("plan_exec · Count", "▶ 1 of 2  Look", "· 2 of 2  数える 🎉", "$ echo first"):
        assert told in text
    assert panel[-2:] == ["    │ first", "    │ half ....."]
    left = terminal.screen
    assert (code, left.cursor_shown) == (0, True)
    assert not any("1 of 2" in line and "▶" in line for line in left.shown)
    assert [line for line in left.shown if "✓ $ echo first" in line]


@pytest.mark.long
def test_ctrl_c_leaves_a_clean_screen(daruma: Daruma) -> None:
    """On 30 columns, too: the panel is gone, the cursor is back, what was told stands there."""
    with hanging(daruma, columns=30) as (terminal, _):
        shown = terminal.screen.shown
        terminal.process.send_signal(signal.SIGINT)
        code = terminal.end()

    left = terminal.screen
    assert (code, left.cursor_shown) == (130, True)
    assert any(line.startswith("  ▶ 1 of 2") for line in shown)
    assert "daruma resume t" in " ".join(line.strip() for line in left.shown)
    assert not any("│ first" in line or "▶" in line for line in left.shown)


@pytest.mark.long
def test_a_reviewer_edits_a_plan_in_an_editor(daruma: Daruma) -> None:
    """What was written in $EDITOR is shown, confirmed, and what runs; a bad edit comes back."""
    editor = daruma.folder.with_name(f"{daruma.folder.name}-editor")  # none of the workspace's
    editor.write_text(
        "#!/bin/sh\n"
        "if test -e $0.once; then sed -i 's/p9/p1/' \"$1\";\n"
        "else touch $0.once; sed -i 's/- p1/- p9/; s/title: Look/title: Look well/' \"$1\"; fi\n"
    )
    editor.chmod(0o755)
    daruma.setenv("EDITOR", str(editor))
    model = daruma.script(plan=[PLAN], main=[DONE, DONE])
    terminal = Terminal(
        daruma, "run", "Count", "--mode", "plan_exec", "--model", model, "--thread", "t"
    )

    for prompt, types in (("[c]onfirm", "e"), ("unknown phases: p9", "e"), ("changed it", "c")):
        terminal.wait_for(prompt)
        terminal.type(types)

    assert terminal.end() == 0
    assert "1. Look well" in daruma("show", "t").out
    assert "undone with: git stash" in terminal.seen


@pytest.mark.long
def test_an_edit_is_asked_about_with_its_diff(daruma: Daruma) -> None:
    """In ``answer`` without an answer, on a terminal; ``show`` prints the same."""
    (daruma.folder / "ws" / "a.py").write_text("one\ntwo\n")
    daruma.configure("tools: {policy: {str_replace_editor: confirm}}\n")
    args = {"command": "str_replace", "path": "a.py", "old_str": "two", "new_str": "2"}
    calls = [{"name": "str_replace_editor", "id": f"c{n}", "args": args} for n in (1, 2)]
    model = daruma.script(main=[{"calls": calls}, DONE])
    daruma("run", "Edit", "--workspace", "ws", "--model", model, "--thread", "t")
    shown = daruma("show", "t").out

    terminal = Terminal(daruma, "answer", "t")
    terminal.wait_for("[l]ater")
    terminal.type("a")
    terminal.wait_for("2 of 2")
    terminal.type("d")
    terminal.wait_for("Why not")
    terminal.type("once is enough")

    assert terminal.end() == 0
    for told in ("1 of 2", "2 of 2", "- two", "+ 2"):
        assert told in shown
        assert told in "\n".join(terminal.screen.shown)
    assert (daruma.folder / "ws" / "a.py").read_text() == "one\n2\n"
