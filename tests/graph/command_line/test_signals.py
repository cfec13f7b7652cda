"""Ctrl-C, a polite kill and ``kill -9``: what is left behind, and that another process goes on."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

import pytest
from tests.daruma_command import DONE, PLAN, Daruma, command
from tests.openai_server import Fault, openai_server
from tests.terminal import Terminal

SECONDS = 60


@contextmanager
def hanging_in_a_tool(daruma: Daruma) -> Iterator[tuple[Popen[str], int]]:
    """A run whose command hangs; yields the run and a FIFO that the command holds open."""
    started = daruma.folder / "ws" / "started"
    os.mkfifo(started)
    hang = "test -e go || { exec 3> started; echo up >&3; exec sleep 1000; }"
    model = daruma.script(main=[{"calls": [command(hang)]}, DONE])
    with (
        daruma.start(
            "run", "Hang", "--workspace", "ws", "--model", model, "--thread", "t", "--yes"
        ) as run,
        started.open("rb", buffering=0) as life,
    ):
        assert life.readline() == b"up\n"
        os.set_blocking(life.fileno(), False)
        yield run, life.fileno()


def is_alive(life: int) -> bool:
    """Whether anybody could still write to the FIFO."""
    try:
        return os.read(life, 1) != b""
    except BlockingIOError:
        return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_a_hanging_tool(daruma: Daruma, number: int, code: int) -> None:
    """The command is killed with the run, which says how to go on; its work is still there."""
    with hanging_in_a_tool(daruma) as (run, life):
        run.send_signal(number)
        out, err = run.communicate(timeout=SECONDS)
        alive = is_alive(life)

    assert (run.returncode, err) == (code, "")
    assert "daruma resume t" in out
    assert not alive
    assert daruma("show", "t", "--json").json["status"] == "unfinished"


def test_a_cancelled_run_is_resumed(daruma: Daruma) -> None:
    """The call that was cut off runs again, and the task ends as if nothing had been."""
    with hanging_in_a_tool(daruma) as (run, _):
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=SECONDS)
    (daruma.folder / "ws" / "go").touch()

    resumed = daruma.run("resume", "t", "--json")

    assert (resumed.code, resumed.json["output"]) == (0, "It is done.")


def test_ctrl_c_cancels_a_hanging_model(daruma: Daruma) -> None:
    """A model that never answers does not hold the command; the thread can be resumed."""
    asked, never = threading.Event(), threading.Event()

    def reply(_: object) -> Fault:
        asked.set()
        return Fault(hang=never)

    with openai_server(reply) as server:
        daruma.setenv("OPENAI_BASE_URL", server.url)
        with daruma.start("run", "Hang", "--model", "openai:test", "--thread", "t") as run:
            assert asked.wait(SECONDS)
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate(timeout=SECONDS)

    assert run.returncode == 130
    assert "daruma resume t" in out
    assert daruma("show", "t", "--json").json["status"] == "unfinished"


def at_a_review(daruma: Daruma) -> Terminal:
    model = daruma.script(plan=[PLAN], main=[{"calls": [command("echo '[red]'")]}, DONE])
    terminal = Terminal(
        daruma, "run", "Do it", "--workspace", "ws", "--mode", "plan_exec", "--model", model,
        "--thread", "t",
    )  # fmt: skip
    terminal.wait_for("[c]onfirm")
    return terminal


def test_killed_at_a_review_it_is_answered_by_another_process(daruma: Daruma) -> None:
    """``kill -9`` while a person thinks costs nothing: the review is still open (PL-02)."""
    terminal = at_a_review(daruma)
    terminal.process.kill()

    assert terminal.end() == -signal.SIGKILL
    assert daruma.run("answer", "t", "--confirm", "--yes").code == 0


def test_a_person_answers_on_the_terminal(daruma: Daruma) -> None:
    """Plan and command are shown, asked for and carried out in one sitting."""
    terminal = at_a_review(daruma)
    terminal.type("c")
    terminal.wait_for("[a]pprove")
    terminal.type("a")

    assert terminal.end() == 0
    assert "$ echo '[red]'" in terminal.seen
    assert "completed" in terminal.seen


def test_ctrl_c_at_a_question_leaves_it_open(daruma: Daruma) -> None:
    """Nothing runs while a person is asked: the question waits, and the exit code says 130."""
    terminal = at_a_review(daruma)
    terminal.process.send_signal(signal.SIGINT)
    terminal.type("")  # a signal that comes just before the read is seen after it

    assert terminal.end() == 130
    assert daruma("show", "t", "--json").json["status"] == "waiting"


def test_a_person_may_decide_later(daruma: Daruma) -> None:
    """Exit code 3, and the command that answers."""
    terminal = at_a_review(daruma)
    terminal.type("l")

    assert terminal.end() == 3
    assert "daruma answer t --confirm" in terminal.seen
