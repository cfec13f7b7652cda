"""Spent budget is read out of the record of steps, and out of nothing else."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_call, a_failure, a_phase, a_plan, a_recovery, a_state, a_task, taken

from daruma.state import budget
from daruma.state.budget import (
    asked_before,
    ended_with,
    hidden_tools,
    outcomes,
    record_step,
    retries,
    retries_of,
)
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.steps import Step, StepKind, append_steps

KINDS = ("plan", "think", "verify", "reflect", "recover")
STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(KINDS),
        task_id=st.sampled_from(["t/1", "t/2"]),
        phase_id=st.sampled_from([None, "p1", "p2"]),
        ok=st.booleans(),
        signature=st.sampled_from(["", "s"]),
    ),
    max_size=30,
)
LIMITS = st.fixed_dictionaries(
    {
        "think": st.integers(1, 7),
        "verify": st.integers(0, 3),
        "reflect": st.integers(0, 2),
        "reinjections": st.integers(0, 2),
        "turn": st.none() | st.integers(1, 10),
    }
)


@given(STEPS, LIMITS, st.sampled_from([None, "p1"]), st.data())
def test_a_fork_has_the_budget_that_its_history_says(
    steps: list[Step], limits: dict[str, int], phase: str | None, data: st.DataObject
) -> None:
    """BU-03: for every prefix of the record the answers follow from counting that prefix alone."""
    kept = steps[: data.draw(st.integers(0, len(steps)))]
    plan = a_plan(a_phase("p1"), current=phase) if phase else None
    state = State(task=a_task("plan_exec", limits=limits), plan=plan, steps=kept)

    own = [s for s in kept if s.task_id == "t/1"]
    here = [s for s in own if phase is None or s.phase_id == phase]
    count = {kind: len([s for s in here if s.kind == kind]) for kind in KINDS}
    turn = limits["turn"] is None or len([s for s in own if s.kind == "think"]) < limits["turn"]

    assert budget.can_think(state) == (count["think"] < limits["think"] and turn)
    assert budget.can_verify(state) == (count["verify"] < limits["verify"])
    once = min(limits["reflect"], 1)  # after a recovery (VE-04)
    reflect = once if count["recover"] else limits["reflect"]
    assert budget.can_reflect(state) == (count["reflect"] < reflect)
    assert budget.count_reflections(state) == count["reflect"]
    assert budget.of_task(state) == own


@pytest.mark.long
@given(STEPS, LIMITS)
def test_spending_never_gives_back(steps: list[Step], limits: dict[str, int]) -> None:
    """A longer history has no more room than a shorter one."""
    state = State(task=a_task(limits=limits), steps=steps)
    longer = replace(state, steps=[*steps, *taken("think", "verify", "reflect")])

    for room in (budget.can_think, budget.can_verify, budget.can_reflect):
        assert room(state) or not room(longer)


def test_every_phase_has_quotas_of_its_own() -> None:
    """BU-01: what p1 has spent is not missing in p2."""
    plan = a_plan(a_phase("p1"), a_phase("p2"), current="p2")
    spent = taken("think", "think", "think", "verify", "verify", "reflect", phase="p1")
    state = State(task=a_task("plan_exec"), plan=plan, steps=spent)

    assert budget.can_think(state)
    assert budget.can_verify(state)
    assert budget.can_reflect(state)


def test_the_turn_counts_the_thinks_of_all_phases() -> None:
    """TL-16: ``max_steps_per_turn`` bounds the whole task, whatever room its phases have."""
    plan = a_plan(a_phase("p1"), a_phase("p2"), current="p2")
    task = a_task("plan_exec", limits={"think": 7, "turn": 2})

    assert not budget.can_think(
        State(task=task, plan=plan, steps=taken("think", "think", phase="p1"))
    )


@pytest.mark.parametrize(
    ("red", "reflected", "reinjections", "may"),
    [
        (1, 0, 1, True),
        (2, 0, 1, False),
        (2, 1, 1, True),
        (3, 1, 1, False),
        (1, 0, 0, False),
        (3, 0, 3, True),
    ],
)
def test_red_results_go_back_at_most_so_often(
    red: int, reflected: int, reinjections: int, may: bool
) -> None:
    """VE-03: those that were reflected on do not count as put back."""
    verified, thought = taken("verify", ok=False), taken("reflect")
    steps = [*verified * red, *thought * reflected, *taken("verify")]
    state = State(task=a_task(limits={"reinjections": reinjections}), steps=steps)

    assert budget.can_reinject(state) is may


@pytest.mark.parametrize(("failed", "may"), [(0, True), (2, True), (3, False)])
def test_planning_is_tried_three_times_in_a_row(failed: int, may: bool) -> None:
    """A usable plan, or another task, begins the count anew."""
    before = [*taken("plan", ok=False, task="t/0"), *taken("plan", ok=False), *taken("plan")]
    state = State(task=a_task(), steps=[*before, *taken("plan", ok=False) * failed])

    assert budget.failed_plans(state) == failed
    assert budget.can_plan(state) is may


def test_without_a_task_there_is_no_budget() -> None:
    """A machine that lost its task stops rather than going on without bounds."""
    state = State(steps=taken("think"))

    assert not budget.can_think(state)
    assert not budget.can_verify(state)
    assert budget.of_task(state) == []


LOOP = a_failure("loop_detected")
HERE, OTHER = a_failure(), a_failure(node="verify")


def recovered(failure: Failure) -> list[Step]:
    return taken("recover", signature=failure.signature)


@pytest.mark.parametrize(
    ("steps", "failure", "count"),
    [
        ([], HERE, 0),
        (recovered(HERE) + taken("think", ok=False) + recovered(HERE), HERE, 2),
        (recovered(HERE) + recovered(OTHER), HERE, 1),
        (recovered(HERE) + taken("think"), HERE, 0),
        (recovered(HERE) + taken("verify"), HERE, 1),
        (recovered(OTHER) + taken("think"), OTHER, 1),
        (recovered(OTHER) + taken("verify"), OTHER, 0),
        (recovered(LOOP) + taken("think"), LOOP, 1),
    ],
)
def test_a_failure_is_another_one_once_it_went_well_between(
    steps: list[Step], failure: Failure, count: int
) -> None:
    """RE-07 speaks of one failure; a loop is the same one for the whole phase."""
    assert budget.recoveries(a_state(steps=steps), failure) == count


def test_recovery_leaves_one_reflection() -> None:
    """VE-04, RE-10: however many there may be without it; what gave up is not reflected on."""
    task = a_task(limits={"reflect": 3})
    once = taken("reflect")

    assert budget.can_reflect(a_state(task=task, steps=once))
    assert budget.can_reflect(a_state(task=task, steps=taken("recover")))
    assert not budget.can_reflect(a_state(task=task, steps=[*once, *taken("recover")]))


@pytest.mark.parametrize("allowed", [0, 1])
def test_recovery_can_be_switched_off(allowed: int) -> None:
    """EM-05."""
    task = a_task(limits={"recoveries": allowed})

    assert budget.can_recover(a_state(task=task)) is bool(allowed)


@pytest.mark.long
@given(STEPS, st.sampled_from([None, "p1"]), st.sampled_from(KINDS), st.integers(0, 30))
def test_a_count_that_is_gone_on_with_is_one_of_all_steps(
    steps: list[Step], phase: str | None, kind: StepKind, known: int
) -> None:
    """BU-03: what was counted of the beginning of a record is not counted otherwise later."""
    plan = a_plan(a_phase("p1"), current=phase) if phase else None
    begun = State(task=a_task("plan_exec"), plan=plan, steps=append_steps([], [steps[:known]]))
    budget.on_thread(begun, kind)
    state = replace(begun, steps=append_steps(begun.steps, [steps[known:]]))

    assert budget.on_thread(state, kind) == budget.count_steps(steps, kind)
    assert budget.in_task(state, kind) == budget.count_steps(budget.of_task(state), kind)
    assert budget.in_phase(state, kind) == budget.count_steps(budget.in_scope(state), kind)
    assert [*budget.latest_in_scope(state)] == [*budget.in_scope(state)][::-1]
    assert [*budget.latest_of_task(state)] == budget.of_task(state)[::-1]


# --- A step is recorded for the task and the phase that are at hand.


def test_a_step_belongs_to_its_task_and_phase() -> None:
    """BU-03: by these its cost is counted."""
    state = a_state(plan=a_plan(a_phase("a"), current="a"))

    (step,) = record_step(state, "think", at=5.0, seconds=2.0, ok=False, signature="s")

    assert (step.kind, step.task_id, step.phase_id) == ("think", "t/1", "a")
    assert (step.at, step.seconds, step.ok, step.signature) == (5.0, 2.0, False, "s")


# --- What the record of steps says of recoveries.

HIDING = taken("recover", recovery=a_recovery("alternative-tool", hides="shout"))
RETRYING = taken("recover", recovery=a_recovery("retry", tool="shout"))
ADJUSTING = taken("recover", recovery=a_recovery("parameter-adjustment", tool="shout"))
OTHER_RECOVERIES = taken("recover", recovery=a_recovery("retry", tool="whisper"))
NO_TOOL = taken("recover", recovery=a_recovery("retry"))
THINK = taken("think")


@pytest.mark.parametrize(
    ("steps", "answered", "hidden"),
    [
        ([], False, False),
        (HIDING, False, True),
        (HIDING + THINK, True, True),
        (HIDING + THINK, False, False),
        (HIDING + THINK + THINK, True, False),
        (HIDING + taken("repair"), False, True),
        (HIDING + RETRYING, False, False),
        (taken("recover", task="t/0", recovery=HIDING[0].recovery), False, False),
    ],
)
def test_a_tool_is_hidden_for_one_answer(steps: list[Step], answered: bool, hidden: bool) -> None:
    """And for the repair of that answer's calls; by the record, so after a resume too."""
    found = hidden_tools(a_state(steps=steps, calls=(a_call(),)), answered=answered)

    assert found == frozenset({"shout"} if hidden else ())


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ([], 0),
        (RETRYING, 1),
        (RETRYING + ADJUSTING, 2),
        (RETRYING + NO_TOOL + ADJUSTING, 2),
        (RETRYING + OTHER_RECOVERIES, 0),
        (RETRYING + HIDING + RETRYING, 1),
    ],
)
def test_retries_of_a_tool_are_counted_until_another_is_chosen(
    steps: list[Step], count: int
) -> None:
    """RE-07."""
    assert retries_of(a_state(steps=steps), "shout") == count


def test_retries_are_those_of_the_phase() -> None:
    """A new phase waits as short as the first did."""
    steps = [*taken("recover", phase="a", recovery=a_recovery("retry")), *RETRYING]
    plan = a_plan(a_phase("a"), a_phase("b"), current="a")

    assert retries(a_state(steps=steps, plan=plan)) == 1


def test_model_calls_are_those_that_were_made() -> None:
    """What was learned before took none."""
    learned = taken("recover", recovery=a_recovery(by="learned"))

    assert asked_before([*RETRYING, *learned, *taken("recover", "consult", "think")]) == 2


@pytest.mark.parametrize(
    ("later", "worked"),
    [
        (taken("think"), True),
        (taken("think", ok=False), False),
        ([], False),
        (taken("recover", "consult"), False),
        (taken("think") + taken("recover", signature="s"), False),
        (taken("think") + taken("recover", signature="other"), True),
        (taken("think", phase="b"), False),
    ],
)
def test_a_recovery_worked_if_the_failure_did_not_come_again(
    later: list[Step], worked: bool
) -> None:
    """RE-08."""
    first = taken("recover", signature="s", recovery=a_recovery("retry"))

    assert next(each.worked for each in outcomes(first + later)) is worked


@pytest.mark.parametrize("carried", ["denied", "observed"])
def test_what_was_not_done_did_not_work(carried: Any) -> None:
    """Whatever came after it."""
    first = taken("recover", signature="s", recovery=a_recovery("retry", carried=carried))

    assert [each.worked for each in outcomes(first + THINK)] == [False]


def test_a_failure_that_was_left_open_was_not_overcome() -> None:
    """RE-08: the last time is given up without a step; work that went on between is no sign."""
    first = taken("recover", phase="a", signature="s", recovery=a_recovery("retry"))
    steps = [*first, *taken("think", phase="a")]

    assert [each.worked for each in outcomes(steps, {"a": {"s"}})] == [False]
    assert [each.worked for each in outcomes(steps, {"b": {"s"}})] == [True]


def test_what_a_task_ended_with_is_read_off_the_state() -> None:
    """Of a plan, what each phase fell of; else what is open, and what recovery worked on."""
    first, last = a_failure(message="first"), a_failure(message="last")
    plan = a_plan(a_phase("a", failure=first), a_phase("b"), current="b")

    assert ended_with(a_state(origin=first, failure=last)) == {
        None: {first.signature, last.signature}
    }
    assert ended_with(a_state(plan=plan, failure=last)) == {None: set(), "a": {first.signature}}
