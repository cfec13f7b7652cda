"""Spent budget is read out of the record of steps, and out of nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_failure, a_phase, a_plan, a_state, a_task, taken

from daruma.state import budget
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
    assert budget.reflected(state) == count["reflect"]
    assert budget.of_task(state) == own


@given(STEPS, LIMITS)
def test_spending_never_gives_back(steps: list[Step], limits: dict[str, int]) -> None:
    """A longer history has no more room than a shorter one."""
    state = State(task=a_task(limits=limits), steps=steps)
    longer = replace(state, steps=[*steps, *taken("think", "verify", "reflect")])

    for room in (budget.can_think, budget.can_verify, budget.can_reflect):
        assert room(state) or not room(longer)


def test_without_phases_the_total_is_plain() -> None:
    """MO-04: in react all thinks of the task count; those of the thread's earlier tasks do not."""
    task = a_task("react", limits={"think": 3})
    earlier = taken("think", "think", "think", task="t/0")

    assert budget.can_think(State(task=task, steps=[*earlier, *taken("think", "think")]))
    assert not budget.can_think(State(task=task, steps=taken("think", "think", "think")))


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


def test_recoveries_are_those_of_the_phase() -> None:
    """The phases before have dealt with failures of their own."""
    steps = taken("recover", phase="a", signature=HERE.signature)
    plan = a_plan(a_phase("a"), a_phase("b"), current="b")

    assert budget.recoveries(a_state(steps=steps, plan=plan), HERE) == 0


def test_recovery_leaves_one_reflection() -> None:
    """VE-04: however many there may be without it."""
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


@given(STEPS, st.sampled_from([None, "p1"]), st.sampled_from(KINDS), st.integers(0, 30))
def test_a_count_that_is_gone_on_with_is_one_of_all_steps(
    steps: list[Step], phase: str | None, kind: StepKind, known: int
) -> None:
    """BU-03: what was counted of the beginning of a record is not counted otherwise later."""
    plan = a_plan(a_phase("p1"), current=phase) if phase else None
    begun = State(task=a_task("plan_exec"), plan=plan, steps=append_steps([], [steps[:known]]))
    budget.on_thread(begun, kind)
    state = replace(begun, steps=append_steps(begun.steps, [steps[known:]]))

    assert budget.on_thread(state, kind) == budget.spent(steps, kind)
    assert budget.in_task(state, kind) == budget.spent(budget.of_task(state), kind)
    assert budget.in_phase(state, kind) == budget.spent(budget.in_scope(state), kind)
    assert [*budget.latest_in_scope(state)] == [*budget.in_scope(state)][::-1]
    assert [*budget.latest_of_task(state)] == budget.of_task(state)[::-1]
