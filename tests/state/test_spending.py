"""What was spent is a function of the record: it only grows, and order does not matter."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_phase, a_plan, a_state, a_task

from daruma.state.spending import (
    Spending,
    allowed,
    overrun,
    spending,
    spent_by_task,
    spent_in_phase,
    stopped,
    unchecked,
)
from daruma.state.steps import Audit, Grant, Step, StepKind
from daruma.state.task import Amounts, Measure, Scope
from daruma.state.usage import Attempt, Failover, Usage

MORE = Amounts(tokens=5, usd=0.5, seconds=2.0)


def used(tokens: int, usd: float | None = None) -> Usage:
    return Usage(role="main", model="m", input_tokens=tokens - 1, output_tokens=1, usd=usd)


def step(kind: StepKind = "think", **changes: Any) -> Step:
    return Step(kind=kind, task_id="t/1", **changes)


def a_grant(scope: Scope = "task", *, stops: bool = False) -> Grant:
    return Grant(node="main", scope=scope, more=Amounts() if stops else MORE, stopped=stops)


USAGES = st.builds(used, st.integers(1, 99), st.none() | st.floats(0, 1))
STEPS = st.lists(
    st.builds(
        step,
        st.sampled_from(["think", "verify", "tool", "pause", "summarise"]),
        at=st.floats(0, 100),
        seconds=st.floats(0, 50),
        phase_id=st.sampled_from([None, "a", "b"]),
        usage=st.none() | USAGES,
    ),
    max_size=8,
)


@given(STEPS, STEPS)
def test_what_is_spent_never_decreases(before: list[Step], after: list[Step]) -> None:
    """BU-04: a fork from a point has spent what its history has, whatever came after."""
    early, late = spending(before), spending([*before, *after])

    assert early.tokens <= late.tokens
    assert (early.usd or 0.0) <= (late.usd or 0.0) + 1e-9
    assert early.seconds <= late.seconds + 1e-9


@given(STEPS.flatmap(lambda steps: st.tuples(st.just(steps), st.permutations(steps))))
def test_the_order_of_writes_does_not_matter(both: tuple[list[Step], list[Step]]) -> None:
    """Calls that run at once write in any order."""
    one, other = both

    assert spending(one) == spending(other)


@given(STEPS)
def test_a_phase_spends_no_more_than_its_task(steps: list[Step]) -> None:
    """And its seconds are not more than the sum of all."""
    state = a_state(task=a_task(), plan=a_plan(a_phase("a"), current="a"), steps=steps)

    task, phase = spent_by_task(state), spent_in_phase(state)
    assert phase.tokens <= task.tokens
    assert phase.seconds <= task.seconds + 1e-9
    assert task.seconds <= sum(each.seconds for each in steps) + 1e-9


@pytest.mark.parametrize(
    ("steps", "spent"),
    [
        ([], Spending(0, 0.0, 0.0)),
        ([step(usage=used(7))], Spending(7, None, 0.0)),
        ([step(usage=used(7, 0.5)), step(usage=used(3))], Spending(10, 0.5, 0.0)),
        ([step("tool", at=1, seconds=4), step("tool", at=2, seconds=4)], Spending(seconds=5.0)),
        ([step("tool", at=1, seconds=1), step("verify", at=9, seconds=2)], Spending(seconds=3.0)),
        ([step("pause", at=1, seconds=9), step("consult", at=1, seconds=9)], Spending()),
    ],
)
def test_steps_are_summed_up(steps: list[Step], spent: Spending) -> None:
    """What runs at once counts once, waiting for people does not, no price is no sum."""
    assert spending(steps) == spent


def test_what_failed_requests_were_charged_counts() -> None:
    """An answer that came and could not be used stands in the audit of its call."""
    attempt = Attempt(model="m", error="broken", then="again", usage=used(9, 0.1))
    audit = Audit(message_id="", failover=Failover(requested="m", attempts=(attempt,)))

    assert spending([step(audit=audit, usage=used(1, 0.2))]) == Spending(10, 0.1 + 0.2, 0.0)


def limited(*steps: Step, **limits: Any) -> Any:
    plan = a_plan(a_phase("a"), current="a")
    return a_state(task=a_task("plan_exec", limits=limits), plan=plan, steps=list(steps))


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ({"spend": Amounts(tokens=10)}, ("task", "tokens")),
        ({"spend": Amounts(tokens=11)}, None),
        ({"spend": Amounts(tokens=11), "taken": Amounts(tokens=1)}, ("task", "tokens")),
        ({"spend": Amounts(usd=0.5)}, ("task", "usd")),
        ({"spend": Amounts(seconds=3)}, ("task", "seconds")),
        ({"spend_in_phase": Amounts(tokens=6)}, ("phase", "tokens")),
        ({"spend_in_phase": Amounts(tokens=7)}, None),
        ({"spend_in_phase": Amounts(tokens=7), "taken_in_phase": MORE}, ("phase", "tokens")),
        ({}, None),
    ],
)
def test_a_limit_is_reached(limits: dict[str, Any], found: tuple[Scope, Measure] | None) -> None:
    """Of the task in all its phases, or of the phase at hand."""
    state = limited(
        step(usage=used(4, 0.25), phase_id="b", at=1, seconds=2),
        step(usage=used(6, 0.25), phase_id="a", at=3, seconds=1),
        **limits,
    )

    over = overrun(state, "main")
    assert (over and (over.scope, over.measure)) == found


def test_another_task_s_spending_is_its_own() -> None:
    """A thread holds many; a plan in the making is no phase."""
    other = replace(step(usage=used(9, 1.0)), task_id="t/0")
    planning = replace(limited(step(usage=used(9, 1.0)), spend_in_phase=MORE), plan=None)

    assert overrun(limited(other, spend=Amounts(tokens=9)), "main") is None
    assert overrun(planning, "plan") is None


def test_a_verification_waits_for_time_alone() -> None:
    """Work is still checked where tokens and money are spent (BU-01)."""
    state = limited(step(usage=used(9, 1.0)), spend=Amounts(tokens=1, usd=0.1, seconds=5))

    assert overrun(state, "main") is not None
    assert overrun(state, "verify") is None


def test_grants_on_record_raise_their_limits() -> None:
    """The phase's grant is not the task's, and where there is no limit there is none to raise."""
    grants = [step("pause", grant=a_grant(scope), phase_id="a") for scope in ("task", "phase")]
    one = Amounts(tokens=10, seconds=1.0)
    state = limited(*grants, *grants[:1], spend=one, spend_in_phase=one)

    assert allowed(state, "task") == Amounts(tokens=20, seconds=5.0)
    assert allowed(state, "phase") == Amounts(tokens=15, seconds=3.0)


def test_who_was_stopped_stays_so_until_more_is_granted() -> None:
    """A stop of another phase is not this one's; the task's is everybody's."""
    end, other = a_grant(stops=True), a_grant("phase", stops=True)

    assert stopped(limited(step("pause", grant=end)))
    assert not stopped(limited(step("pause", grant=end), step("pause", grant=a_grant())))
    assert stopped(limited(step("pause", grant=other, phase_id="a")))
    assert not stopped(limited(step("pause", grant=other, phase_id="b")))


def test_work_is_unchecked_until_it_is_verified() -> None:
    """Only what came after the last verification is."""
    think, verify = step(phase_id="a"), step("verify", phase_id="a")

    assert [unchecked(limited(*s)) for s in ([], [think], [think, verify])] == [False, True, False]
    assert unchecked(limited(think, verify, replace(think, at=2.0)))
