"""Loops in whole runs: ended before they run again, and nothing that goes on is ended."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.graph.test_machine_halts import Walker, World
from tests.parts import settings
from tests.scripted_runs import Run, against, call, calls, illegal, say, shout, unclosed

from daruma.state.budget import spent
from daruma.state.mode import Mode

UNAIDED = {
    "fallback_chain": {"recovery": {"max_retries": 0}},
    "budgets": {"preset": "frugal"},
}
MANY = {"budgets": {"max_steps": 20}}


def polled() -> Callable[..., str]:
    """A tool whose answer changes each time."""
    numbers = count()

    def progress(job: str) -> str:
        """Tell how far a job is."""
        return f"{job}: {next(numbers)} of 15"

    return progress


@pytest.mark.parametrize("mode", ["react", "plan_exec"])
def test_a_model_that_loops_is_stopped_and_one_that_polls_is_not(mode: Mode) -> None:
    """RE-02: identical calls with identical results end before their quota, and no other ones."""
    walked = {
        said: Walker(World(mode=mode, main=said), settings(**UNAIDED)).walk()
        for said in ("loops", "polls", "works")
    }

    thinks = {said: sum(s.kind == "think" for s in w.steps) for said, w in walked.items()}
    quota, stopped = {"react": (10, 3), "plan_exec": (7, 4)}[mode]
    assert thinks == {"loops": stopped, "polls": quota, "works": quota}
    looped = [said for said, w in walked.items() if w.error and "loop" in w.error.error_code]
    assert looped == ["loops"]


def test_a_loop_ends_the_task_with_its_code() -> None:
    """EM-02: the calls ran twice, the third answer is answered and not run."""
    ran: list[str] = []

    def look(text: str) -> str:
        """Look something up."""
        ran.append(text)
        return "nothing"

    turns = [calls(call("look", text=text)) for text in ("Foo bar", "foo  bar", "foo, bar")]
    run = Run(turns, settings=settings(**UNAIDED), tools=[look]).ask()

    assert ran == ["Foo bar", "foo  bar"]
    assert run.result.status == "failed"
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "loop_detected"
    assert "look, 2 times with the same results" in run.result.output
    assert illegal(run.messages) == []
    assert unclosed(run.events) == []
    assert [m.text[:8] for m in run.messages if m.type == "tool"][-1] == "Not run:"


@pytest.mark.parametrize(
    "turns",
    [
        [calls(call(text=f"word {n}")) for n in range(15)],
        [calls(call("progress", job="build"))] * 15,
    ],
)
def test_fifteen_calls_that_go_on_are_none(turns: list[Any]) -> None:
    """MEASURED: different calls, and a poll whose answer changes."""
    run = Run([*turns, say()], settings=settings(**MANY), tools=[shout, polled()]).ask()

    assert run.result.status == "completed"
    assert run.result.budgets["think"] == 16


def test_a_fork_of_a_loop_is_judged_by_its_own_history() -> None:
    """BU-03: taken up again one round before its end, it is stopped at the same place."""
    run = Run([calls("shout")] * 3, settings=settings(**UNAIDED), tools=[shout]).ask()
    history = list(run.graph.get_state_history(run.config))
    (after_one,) = [
        s for s in history if s.next == ("main",) and spent(s.values["steps"], "think") == 1
    ]
    ended = run.result
    run.nodes.clear()

    for part in run.graph.stream(None, after_one.config, stream_mode="updates"):
        run.nodes.extend(part)

    assert run.nodes[:4] == ["main", "tool", "main", "settle"]
    assert run.result.error_struct == ended.error_struct
    assert run.result.budgets == ended.budgets


def test_a_recovery_of_a_loop_that_comes_again_did_not_work() -> None:
    """RE-08: the calls after it went well, as they had before."""
    script = {"main": [calls("shout")] * 9, "recovery": [against("parameter-adjustment")]}
    run = Run(script, settings=settings(budgets={"max_steps": 9}), tools=[shout]).ask()

    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "loop_detected"
    assert [each.worked for each in run.result.recoveries] == [False]


ALLOWED = {"tools": {"policy": {"run_command": "allow"}}}


def viewed(name: str) -> dict[str, Any]:
    return call("str_replace_editor", command="view", path=name)


def ran(line: str) -> dict[str, Any]:
    return call("run_command", command=line)


@pytest.mark.parametrize(
    ("made", "stopped"),
    [
        ([viewed(f"lost/{name}.txt") for name in "abcdefghijkl"], True),
        ([viewed(f"{name}.txt") for name in "abcdefghijkl"], False),
        ([ran(f"cat lost-{name}") for name in "abcdefghijkl"], True),
        ([ran(f"true {name}") for name in "abcdefghijkl"], True),
        ([ran(f"touch new-{name}") for name in "abcdefghijkl"], False),
        ([ran(f"cat {name}.txt") for name in "abcdefghijkl"], False),
    ],
    ids=["absent", "there", "cat absent", "nothing done", "something done", "cat there"],
)
def test_what_fails_alike_or_does_nothing_is_stuck(
    made: list[dict[str, Any]], stopped: bool, tmp_path: Path
) -> None:
    """RE-01a: whatever it is called with; what is there, or changes, is progress."""
    for name in "abcdefghijkl":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    script = [*map(calls, made), say()]
    given = settings(**UNAIDED | MANY | ALLOWED)
    run = Run(script, settings=given).ask(workspace=str(tmp_path))

    error = run.result.error_struct
    assert (error.error_code if error else None) == ("loop_detected" if stopped else None)
    thinks = run.result.budgets["think"]
    assert thinks == 5 if stopped else thinks == 13
