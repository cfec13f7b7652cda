"""Ctrl-C, a polite kill and ``kill -9``: what is left behind, and that another process goes on."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

import pytest
from tests.daruma_command import DONE, PLAN, Daruma, Said, command
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


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_a_hanging_tool(daruma: Daruma, number: int, code: int) -> None:
    """The command is killed with the run, which says how to go on; its work is still there.

    The call that was cut off runs again, and the task ends as if nothing had been.
    """
    with hanging_in_a_tool(daruma) as (run, life):
        run.send_signal(number)
        out, err = run.communicate(timeout=SECONDS)
        alive = is_alive(life)
    stood = daruma("show", "t", "--json").json["status"]
    (daruma.folder / "ws" / "go").touch()

    resumed = daruma.run("resume", "t", "--yes", "--json")  # there is a new file: it is asked again

    assert (run.returncode, err) == (code, "")
    assert "daruma resume t" in out
    assert not alive
    assert stood == "unfinished"
    assert (resumed.code, resumed.json["output"]) == (0, "It is done.")


@pytest.mark.long
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
    model = daruma.script(plan=[PLAN], main=[{"calls": [command("echo '[red]' > red")]}, DONE])
    terminal = Terminal(
        daruma, "run", "Do it", "--workspace", "ws", "--mode", "plan_exec", "--model", model,
        "--thread", "t",
    )  # fmt: skip
    terminal.wait_for("[c]onfirm")
    return terminal


@pytest.mark.long
def test_killed_at_a_review_it_is_answered_by_another_process(daruma: Daruma) -> None:
    """``kill -9`` while a person thinks costs nothing: the review is still open (PL-02)."""
    terminal = at_a_review(daruma)
    terminal.process.kill()

    assert terminal.end() == -signal.SIGKILL
    assert daruma.run("answer", "t", "--confirm", "--yes").code == 0


@pytest.mark.long
def test_a_person_answers_on_the_terminal(daruma: Daruma) -> None:
    """Plan and command are shown, asked for and carried out in one sitting."""
    terminal = at_a_review(daruma)
    terminal.type("c")
    terminal.wait_for("[a]pprove")
    terminal.type("a")

    assert terminal.end() == 0
    assert "$ echo '[red]' > red" in terminal.seen
    assert "completed" in terminal.seen


@pytest.mark.long
def test_ctrl_c_at_a_question_leaves_it_open(daruma: Daruma) -> None:
    """Nothing runs while a person is asked: the question waits, and the exit code says 130."""
    terminal = at_a_review(daruma)
    terminal.process.send_signal(signal.SIGINT)
    terminal.type("")  # a signal that comes just before the read is seen after it

    assert terminal.end() == 130
    assert daruma("show", "t", "--json").json["status"] == "waiting"


# --- Threads that a command leaves to workers: queued, carried out, followed, answered.


def submit(daruma: Daruma, *more: str, name: str = "t") -> Said:
    """Leave a thread with a plan to a worker."""
    model = daruma.script(plan=[PLAN], main=[DONE])
    options = ("--mode", "plan_exec", "--model", model, "--thread", name, "--submit")
    return daruma("run", "Do it", *options, *more)


def standing(daruma: Daruma) -> list[list[str]]:
    """What ``daruma threads`` says: name, status and goal of each."""
    rows = [row.split("\t") for row in daruma("threads").out.splitlines()]
    return [[row[0], row[1], row[3]] for row in rows]


@pytest.mark.long
def test_a_worker_uses_the_folder_and_model_of_the_command(daruma: Daruma) -> None:
    """It may be started anywhere else on the machine."""
    daruma.configure("spec_review: {enabled: false}\n")
    (daruma.folder / "elsewhere").mkdir()
    submit(daruma)
    daruma.chdir(daruma.folder / "elsewhere")

    daruma("worker", "--once")

    assert standing(daruma) == [["t", "completed, not checked", "Do it"]]


def hanging(daruma: Daruma) -> tuple[Popen[str], Popen[str]]:
    """A worker in the middle of a command, and somebody who follows its thread."""
    daruma.configure("tools: {policy: {run_command: allow}}\n")
    model = daruma.script(main=[{"calls": [command("test -e go || sleep 1000")]}, DONE])
    daruma("run", "Go", "--workspace", "ws", "--model", model, "--thread", "t", "--submit")
    worker, follower = daruma.start("worker", "--grace", "0"), daruma.start("show", "t", "--follow")
    assert follower.stdout
    while "running" not in follower.stdout.readline():
        pass
    return worker, follower


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_a_worker_that_is_told_to_stop_leaves_its_thread_to_others(
    daruma: Daruma, number: int
) -> None:
    """Exit code 0; it is running, then queued; who follows it can leave at any time."""
    worker, follower = hanging(daruma)
    running = standing(daruma)
    follower.send_signal(signal.SIGINT)
    followed = follower.communicate(timeout=60)
    still = standing(daruma)
    worker.send_signal(number)
    _, err = worker.communicate(timeout=60)
    queued = standing(daruma)
    (daruma.folder / "ws" / "go").touch()
    daruma("worker", "--once")

    assert running == still == [["t", "running", "Go"]]
    assert (follower.returncode, followed[1]) == (130, "")
    assert (worker.returncode, queued) == (0, [["t", "queued", "Go"]])
    assert "put off" in err
    assert standing(daruma) == [["t", "completed, not checked", "Go"]]
