"""The alarm is raised from the record of steps, within the phase and the attempt."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parts import a_phase, a_plan, a_state, a_task, taken
from tests.state.test_rounds import think
from tests.state.traces.endless import cycle_of
from tests.state.traces.trace import Call, Turn, Watched, runs_before_alarm

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.progress import alarm, repeating, without_progress
from daruma.state.steps import Step, append_steps

LOOPING = [think("shout#1"), think("shout#1", "x")]
ASKED = think("shout#1", "x")


def in_phase(steps: list[Step], phase_id: str) -> list[Step]:
    return [replace(step, phase_id=phase_id) for step in steps]


def test_a_loop_is_a_failure_that_names_its_tool() -> None:
    """EM-02 and RE-03."""
    assert alarm(a_state(steps=LOOPING), ASKED) == Failure(
        code="loop_detected",
        node="main",
        message="shout, 2 times with the same results",
        tool="shout",
    )


def test_being_stuck_names_what_is_in_the_way() -> None:
    """RE-03: and the tool that was tried last."""
    steps = [think(f"edit#{n}", "" if n == 1 else "!e") for n in (1, 2, 3)]
    found = alarm(a_state(steps=steps), think("edit#4", "!e", blockers=("no such text",)))

    assert found is not None
    assert (found.code, found.tool) == ("loop_detected", "edit")
    assert found.message == "no progress over the last 3 steps: no such text"


def test_being_stuck_is_about_what_was_done_last() -> None:
    """And not about the call that was not run for it."""
    steps = [think("a#1"), *(think(f"{tool}#1", "x") for tool in "bab")]
    found = alarm(a_state(steps=steps, task=a_task("plan_exec")), think("a#1", "x"))

    assert found is None
    steps += [think("a#1", "x")]
    found = alarm(a_state(steps=steps, task=a_task("plan_exec")), think("b#1", "x"))
    assert found is not None
    assert found.tool == "a"
    assert found.message.endswith("what was done had been done before")


def test_an_answer_is_never_stuck() -> None:
    """However little the steps before it brought."""
    steps = [think(f"{tool}#1", "!e" if n else "") for n, tool in enumerate("abcdefgh")]
    state = a_state(steps=steps)

    assert alarm(state, think("x#1", "!e", blockers=("no",))) is not None
    assert alarm(state, think("", "!e", blockers=("no",))) is None


@pytest.mark.parametrize(
    ("state", "asked"),
    [
        (a_state(steps=LOOPING), think("", "x")),
        (a_state(steps=LOOPING, task=None), ASKED),
        (a_state(steps=LOOPING, task=a_task("plan_exec")), ASKED),
        (a_state(steps=[*LOOPING, *taken("reflect")]), ASKED),
    ],
)
def test_no_alarm(state: State, asked: Step) -> None:
    """An answer, no task, a mode that is more patient, an attempt that has just begun."""
    assert alarm(state, asked) is None


@given(st.lists(st.sampled_from(["other phase", "other task"]), max_size=4), st.integers(0, 2))
def test_steps_of_other_phases_and_tasks_change_nothing(others: list[str], at: int) -> None:
    """Each begins anew, wherever their steps stand."""
    plan = a_plan(a_phase("a", status="running"), a_phase("b"), current="a")
    foreign = {
        "other phase": replace(ASKED, phase_id="b"),
        "other task": replace(ASKED, phase_id="a", task_id="t/0"),
    }
    mine = in_phase([think("shout#1"), ASKED, ASKED], "a")
    mixed = [*mine[:at], *(foreign[other] for other in others), *mine[at:]]
    task = a_task("plan_exec")

    found = alarm(a_state(task=task, plan=plan, steps=mixed), ASKED)

    assert found is not None
    assert found == alarm(a_state(task=task, plan=plan, steps=mine), ASKED)
    assert alarm(a_state(task=task, plan=plan, steps=mixed[: at + len(others)]), ASKED) is None


TURNS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 9), st.integers(0, 9)).map(
        lambda drawn: [Call(drawn[0], {"n": drawn[1]}, f"result {drawn[2]}")]
    ),
    max_size=15,
    unique_by=str,
)


@given(TURNS, st.sampled_from(["react", "plan_exec"]))
def test_a_trace_of_different_rounds_raises_no_alarm(turns: list[Turn], mode: str) -> None:
    """MEASURED: 15 different calls are no loop, whatever they return."""
    assert runs_before_alarm(turns, "react" if mode == "react" else "plan_exec") is None


def test_whoever_goes_on_the_same_way_is_stopped_at_once() -> None:
    """RE-07: a second alarm is the same failure; something else closes the matter."""
    watched = Watched()
    loop, other = [Call("a", {}, "x")], [Call("b", {}, "y")]
    first = [watched.play(loop) for _ in range(4)]
    after = [watched.play(turn) for turn in (other, loop, loop)]

    assert first[:2] == [None, None]
    assert first[2] is not None
    assert first[2] == first[3]
    assert [each is None for each in after] == [True, True, True]
    assert watched.play(loop) is not None


def test_a_record_read_again_gives_the_same_alarm() -> None:
    """BU-03: nothing is counted apart, so that a fork or a resumed run is judged alike."""
    turns = cycle_of(2).turns(Random(1))  # noqa: S311  # no secret
    watched = Watched()
    raised = next(filter(None, (watched.play(turn) for turn in turns)))
    *before, refused = watched.state.steps

    assert alarm(a_state(steps=before), refused) == raised


THINKS = st.builds(
    Step,
    kind=st.sampled_from(["think"] * 6 + ["reflect", "recover"]),
    task_id=st.sampled_from(["t/1"] * 4 + ["t/0"]),
    phase_id=st.sampled_from(["p1", "p1", "p2"]),
    ok=st.sampled_from([True, True, True, False]),
    signature=st.sampled_from(["a#1", "a#2", "b#1", ""]),
    saw=st.sampled_from(["", "x", "!x", "!y"]),
    blockers=st.sampled_from([(), ("no",)]),
)


FAILING = [think("a#1"), *(think(f"a#{n}", "!e") for n in (2, 3))]
REFUSED = think("a#4", "!e", ok=False)
SLOW = [think("a#1"), *(think(f"{tool}#1", "x") for tool in "babababa")]


@given(st.lists(THINKS, max_size=14), THINKS, st.sampled_from([None, "p1"]))
@example([*FAILING, REFUSED], think("a#5"), None)
@example(
    [*in_phase([*FAILING, REFUSED], "p1"), *in_phase([think("b#1")], "p2")], think("a#5"), "p1"
)
@example(FAILING, think("a#5", "!e"), None)
@example(SLOW, think("c#1", "x", blockers=("no",)), None)
@example(SLOW, think("b#1", "x"), None)
def test_work_that_plainly_goes_on_would_never_raise_an_alarm(
    steps: list[Step], asked: Step, phase: str | None
) -> None:
    """The rounds are only gone through where they may tell something; a resumed run asks anew."""
    plan = a_plan(a_phase("p1"), a_phase("p2"), current=phase) if phase else None
    state = a_state(steps=steps, plan=plan)
    grown = a_state(steps=[], plan=plan)
    for step in steps:
        grown = replace(grown, steps=append_steps(grown.steps, [[step]]))
        alarm(grown, asked)
    past = list(budget.in_scope(state))
    repeats = repeating(past, asked, threshold=2) or without_progress(past, asked)

    assert bool(alarm(state, asked)) == bool(repeats and asked.signature)
    assert alarm(grown, asked) == alarm(state, asked)
