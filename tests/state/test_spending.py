"""What was spent is a function of the record: it only grows, and order does not matter."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_phase, a_plan, a_state, a_task, settings, taken

from daruma.state.budget import in_scope
from daruma.state.mode import Mode
from daruma.state.spending import (
    AGAIN,
    STOP,
    Spending,
    allowed_amounts,
    amount_in,
    describe_overrun,
    has_unchecked_work,
    helper_limits,
    is_stopped,
    limits_of,
    only_if_changed,
    overrun,
    read_grant,
    spending,
    spent_by_task,
    standing,
    verifies,
    with_shares,
)
from daruma.state.steps import Audit, Grant, Overrun, Step, StepKind
from daruma.state.task import Amounts, Limits, Measure, Scope
from daruma.state.usage import Attempt, Failover, Usage

MORE = Amounts(tokens=5, usd=0.5, seconds=2.0)


def used_spending(tokens: int, usd: float | None = None) -> Usage:
    return Usage(role="main", model="m", input_tokens=tokens - 1, output_tokens=1, usd=usd)


def step(kind: StepKind = "think", **changes: Any) -> Step:
    return Step(kind=kind, task_id="t/1", **changes)


def a_grant(scope: Scope = "task", *, stops: bool = False) -> Grant:
    return Grant(node="main", scope=scope, more=Amounts() if stops else MORE, stopped=stops)


USAGES = st.builds(used_spending, st.integers(1, 99), st.none() | st.floats(0, 1))
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


@pytest.mark.long
@given(STEPS.flatmap(lambda steps: st.tuples(st.just(steps), st.permutations(steps))))
def test_the_order_of_writes_does_not_matter(both: tuple[list[Step], list[Step]]) -> None:
    """Calls that run at once write in any order."""
    one, other = both

    assert spending(one) == spending(other)


@pytest.mark.long
@given(STEPS)
def test_a_phase_spends_no_more_than_its_task(steps: list[Step]) -> None:
    """And its seconds are not more than the sum of all."""
    state = a_state(task=a_task(), plan=a_plan(a_phase("a"), current="a"), steps=steps)

    task, phase = spent_by_task(state), spending([*in_scope(state)])
    assert phase.tokens <= task.tokens
    assert phase.seconds <= task.seconds + 1e-9
    assert task.seconds <= sum(each.seconds for each in steps) + 1e-9


@pytest.mark.parametrize(
    ("steps", "spent"),
    [
        ([], Spending(0, 0.0, 0.0)),
        ([step(usage=used_spending(7))], Spending(7, None, 0.0)),
        ([step(usage=used_spending(7, 0.5)), step(usage=used_spending(3))], Spending(10, 0.5, 0.0)),
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
    attempt = Attempt(model="m", error="broken", then="again", usage=used_spending(9, 0.1))
    audit = Audit(message_id="", failover=Failover(requested="m", attempts=(attempt,)))

    assert spending([step(audit=audit, usage=used_spending(1, 0.2))]) == Spending(
        10, 0.1 + 0.2, 0.0
    )


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
        step(usage=used_spending(4, 0.25), phase_id="b", at=1, seconds=2),
        step(usage=used_spending(6, 0.25), phase_id="a", at=3, seconds=1),
        **limits,
    )

    over = overrun(state, "main")
    assert (over and (over.scope, over.measure)) == found


def test_a_verification_waits_for_time_alone() -> None:
    """Work is still checked where tokens and money are spent (BU-01)."""
    state = limited(step(usage=used_spending(9, 1.0)), spend=Amounts(tokens=1, usd=0.1, seconds=5))

    assert overrun(state, "main") is not None
    assert overrun(state, "verify") is None


def test_grants_on_record_raise_their_limits() -> None:
    """The phase's grant is not the task's, and where there is no limit there is none to raise."""
    grants = [step("pause", grant=a_grant(scope), phase_id="a") for scope in ("task", "phase")]
    one = Amounts(tokens=10, seconds=1.0)
    state = limited(*grants, *grants[:1], spend=one, spend_in_phase=one)

    assert allowed_amounts(state, "task") == Amounts(tokens=20, seconds=5.0)
    assert allowed_amounts(state, "phase") == Amounts(tokens=15, seconds=3.0)


def test_who_was_stopped_stays_so_until_more_is_granted() -> None:
    """A stop of another phase is not this one's; the task's is everybody's."""
    end, other = a_grant(stops=True), a_grant("phase", stops=True)

    assert is_stopped(limited(step("pause", grant=end)))
    assert not is_stopped(limited(step("pause", grant=end), step("pause", grant=a_grant())))
    assert is_stopped(limited(step("pause", grant=other, phase_id="a")))
    assert not is_stopped(limited(step("pause", grant=other, phase_id="b")))


def test_work_is_unchecked_until_it_is_verified() -> None:
    """Only what came after the last verification is."""
    think, verify = step(phase_id="a"), step("verify", phase_id="a")

    assert [has_unchecked_work(limited(*s)) for s in ([], [think], [think, verify])] == [
        False,
        True,
        False,
    ]
    assert has_unchecked_work(limited(think, verify, replace(think, at=2.0)))


# --- What each of several team members may spend: together no more than is left.


def spent(tokens: int, usd: float, phase: str | None = None) -> Step:
    usage = Usage(role="main", model="m", input_tokens=tokens, usd=usd)
    return Step(kind="think", task_id="t/1", phase_id=phase, usage=usage, seconds=2.0)


@given(st.integers(1, 1000), st.integers(0, 1500), st.integers(1, 5))
def test_shares_are_what_is_left(limit: int, used: int, members: int) -> None:
    """BU-04: of tokens and money, to the last one; all have the same time, as it passes at once."""
    task = a_task(limits={"spend": Amounts(tokens=limit, usd=float(limit), seconds=9.0)})
    state = a_state(task=task, steps=[spent(used, float(used))])
    names = [f"p{n}" for n in range(members)]

    shared = with_shares(state, [task] * members, names)

    own = [allowed_amounts(a_state(task=each), "task") for each in shared]
    left = max(limit - used, 0)
    assert sum(each.tokens or 0 for each in own) == left
    assert abs(sum(each.usd or 0.0 for each in own) - left) < 1e-6
    assert {each.seconds for each in own} == {7.0}


def test_a_phase_that_is_tried_again_has_what_it_left() -> None:
    """Its own grants count, other phases do not."""
    task = a_task(limits={"spend_in_phase": Amounts(tokens=10)})
    grant = Grant(node="main", scope="phase", more=Amounts(tokens=5))
    more = Step(kind="pause", task_id="t/1", phase_id="a", grant=grant)
    tasks = replace(more, grant=replace(grant, scope="task"))
    state = a_state(task=task, steps=[spent(8, 0.0, "a"), more, tasks, spent(3, 0.0, "b")])

    first, second, third = with_shares(state, [task] * 3, ["a", "b", "c"])

    own = [allowed_amounts(a_state(task=each), "phase").tokens for each in (first, second, third)]
    assert own == [7, 7, 10]


def test_who_said_to_stop_is_not_asked_by_each_member() -> None:
    """Neither is anybody asked whose task has no such budget."""
    end = Grant(node="main", scope="task", more=Amounts(), stopped=True)
    state = a_state(task=a_task(), steps=[Step(kind="pause", task_id="t/1", grant=end)])
    assert state.task is not None

    (told,) = with_shares(state, [state.task], ["a"])
    assert told.limits.when_spent == "stop"
    assert told.limits.taken is None


# --- What a task may spend, by its mode and the settings.


@pytest.mark.parametrize(
    ("mode", "think"), [("direct_chat", 1), ("react", 50), ("plan_exec", 50), ("team_collab", 50)]
)
def test_each_mode_has_its_limit_of_thinks(mode: Mode, think: int) -> None:
    """MO-01, MO-04 and BU-01 by default."""
    assert limits_of(settings(), mode) == Limits(think=think, verify=4, reflect=2, look=8, replan=1)


@pytest.mark.parametrize(
    ("sections", "field", "value"),
    [
        ({"budgets": {"max_steps_per_turn": 4}}, "turn", 4),
        ({"budgets": {"reflect": 5, "verify": 7}}, "reflect", 5),
        ({"budgets": {"preset": "frugal"}}, "think", 7),
        ({"budgets": {"preset": "frugal"}}, "reinjections", 0),
        ({"budgets": {"preset": "frugal", "think": 9}}, "think", 9),
        ({"budgets": {"reflect": 0}}, "reflect", 0),
        (
            {"verification": {"max_reinjections": 3}, "budgets": {"verify": 6}},
            "reinjections",
            3,
        ),
        ({"fallback_chain": {"recovery": {"ask": True}}}, "ask", True),
        ({"fallback_chain": {"recovery": {"max_retries": 2}}}, "recoveries", 2),
        ({"fallback_chain": {"recovery": {"enabled": False}}}, "recoveries", 0),
        ({"fallback_chain": {"recovery": {"observe_only": True}}}, "recoveries", 1),
        ({"fallback_chain": {"enabled": False}}, "recoveries", 0),
    ],
)
def test_limits_are_copied_from_the_settings(
    sections: dict[str, Any], field: str, value: int
) -> None:
    """VE-04, RE-06 and EM-05: later settings do not change a task that has begun."""
    assert getattr(limits_of(settings(**sections), "plan_exec"), field) == value


@pytest.mark.parametrize(
    ("enabled", "modes"),
    [
        ("auto", {"react", "plan_exec", "team_collab"}),
        (True, {"react", "plan_exec", "team_collab"}),
        (False, set()),
    ],
)
def test_who_is_verified(enabled: object, modes: set[Mode]) -> None:
    """MO-03, MO-04 and MO-05: direct chat never is."""
    given = settings(verification={"enabled": enabled})
    every: tuple[Mode, ...] = ("direct_chat", "react", "plan_exec", "team_collab")

    assert {mode for mode in every if verifies(given, mode)} == modes


@pytest.mark.parametrize(("enabled", "modes"), [("auto", {"react"}), (True, set()), (False, set())])
def test_who_is_verified_only_after_a_change(enabled: object, modes: set[Mode]) -> None:
    """MO-04."""
    given = settings(verification={"enabled": enabled})
    every: tuple[Mode, ...] = ("direct_chat", "react", "plan_exec", "team_collab")

    assert {mode for mode in every if only_if_changed(given, mode)} == modes


# --- What can be said to a budget that is spent.


def over(scope: Scope, measure: Measure, spent: float, limit: float) -> Overrun:
    return Overrun(node="main", scope=scope, measure=measure, spent=spent, limit=limit)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("tokens 50000", ("tokens", 50000.0)),
        (" Tokens 50,000 ", ("tokens", 50000.0)),
        ("usd 2.5", ("usd", 2.5)),
        ("seconds 1_000", ("seconds", 1000.0)),
        ("tokens 1,250,000", ("tokens", 1250000.0)),
        ("usd 2,5", None),
        ("usd 1,00", None),
        ("tokens 1,0000", None),
        ("u\u017fd 5", None),
        ("tokens 1.5", None),
        ("usd 0", None),
        ("usd -1", None),
        ("usd inf", None),
        ("tokens", None),
        ("50000", None),
        ("tokens 1 2", None),
        ("usd 1,000.5", ("usd", 1000.5)),
        ("usd 2,50", None),
        ("tokens 5,,000", None),
        ("tokens 50_", None),
    ],
)
def test_an_amount_is_read(answer: str, found: tuple[str, float] | None) -> None:
    """A measure and a number above 0, of tokens a whole one; a decimal comma is no thousands'."""
    assert amount_in(answer) == found


def test_an_answer_is_a_grant_or_an_end() -> None:
    """As much again is what the limit was."""
    assert read_grant(AGAIN, "tokens", 10) == Amounts(tokens=10)
    assert read_grant("usd 2", "usd", 10) == Amounts(usd=2.0)
    assert read_grant("seconds 3", "seconds", 10) == Amounts(seconds=3.0)
    assert read_grant(STOP, "usd", 10) is None


@pytest.mark.parametrize(
    ("reached", "line"),
    [
        (
            over("task", "tokens", 51200.0, 50000.0),
            "task's budget of 50,000 tokens is spent (51,200 ",
        ),
        (over("phase", "usd", 0.2512, 0.25), "phase's budget of $0.25 is spent ($0.2512 used)."),
        (over("task", "seconds", 61.25, 60.0), "task's budget of 60.0 s is spent (61.2 s used)."),
    ],
)
def test_a_limit_that_is_reached_is_told(reached: Overrun, line: str) -> None:
    """In a line, with what was used."""
    assert line in describe_overrun(reached)


# --- What is spent of each budget, as all who show it count it.


def test_steps_are_counted_in_whole_numbers() -> None:
    """Nobody thinks 2.0 times; amounts of money and time keep their fractions."""
    task = a_task("react")

    told = standing(a_state(task=task, steps=taken("think", "think")))

    assert str(told["think"][0]) == "2"
    assert str(told["think"][1]) == str(task.limits.think)


# --- What helpers may spend (PL-08).

MEASURES: tuple[Measure, ...] = ("tokens", "usd", "seconds")
AMOUNTS = st.builds(
    Amounts,
    tokens=st.none() | st.integers(0, 500),
    usd=st.none() | st.floats(0, 5),
    seconds=st.none() | st.floats(0, 100),
)


@given(
    helpers=st.integers(1, 9),
    think=st.integers(0, 30),
    turn=st.none() | st.integers(0, 30),
    of_task=st.none() | AMOUNTS,
    of_phase=st.none() | AMOUNTS,
    planned=st.booleans(),
    steps=STEPS,
    helped=st.integers(0, 3),
)
def test_helpers_never_have_more_than_their_caller_has_left(
    *,
    helpers: int,
    think: int,
    turn: int | None,
    of_task: Amounts | None,
    of_phase: Amounts | None,
    planned: bool,
    steps: list[Step],
    helped: int,
) -> None:
    """PL-08, BU-03: whatever the limits are, and whatever was spent before, also by helpers."""
    limits = {"think": think, "turn": turn, "spend": of_task, "spend_in_phase": of_phase}
    steps = [replace(each, helper="h" * (n < helped)) for n, each in enumerate(steps)]
    state = a_state(
        task=a_task("plan_exec" if planned else "react", limits=limits),
        plan=a_plan(a_phase("a", status="running"), current="a") if planned else None,
        steps=steps,
    )

    shares = helper_limits(state, helpers)

    ours = [each for each in steps if not planned or each.phase_id == "a"]
    thought = sum(each.kind == "think" for each in ours)
    in_turn = sum(each.kind == "think" for each in steps)
    bounds = [think - thought, *([] if turn is None else [turn - in_turn])]
    assert sum(each.think for each in shares) == max(0, min(bounds) - 1)
    assert max(each.think for each in shares) - min(each.think for each in shares) <= 1
    left = dict[Measure, float]()
    for amounts, spent in ((of_task, spending(steps)), (of_phase, spending(ours))):
        for measure in MEASURES:
            limit = amounts.of(measure) if amounts else None
            if limit is not None:
                rest = max(0.0, limit - spent.of(measure))
                left[measure] = min(left.get(measure, rest), rest)
    given_out = [each.spend or Amounts() for each in shares]
    for measure in MEASURES:
        found = [each.of(measure) for each in given_out]
        if measure not in left:
            assert found == [None] * helpers
        elif measure == "seconds":  # time passes for all of them at once
            assert found == [pytest.approx(left[measure])] * helpers
        else:
            assert sum(each or 0 for each in found) == pytest.approx(left[measure])
    kept = {(s.turn, s.spend_in_phase, s.taken, s.when_spent, s.ask) for s in shares}
    assert kept == {(None, None, None, "stop", False)}


def test_a_limit_without_an_end_is_shared_too() -> None:
    """So people write that there is none: before anything is spent, all of it is left."""
    state = a_state(task=a_task(limits={"spend": Amounts(tokens=10**20)}))

    assert [each.spend for each in helper_limits(state, 2)] == [Amounts(tokens=10**20 // 2)] * 2


def test_what_a_helper_was_stopped_at_stops_nobody_else() -> None:
    """PL-08: that its share was spent is no word about the task's budget, nor about its checks."""
    stop = step("pause", helper="h", grant=a_grant(stops=True))
    state = a_state(steps=[step(), stop, step("verify", helper="h")])

    assert not is_stopped(state)
    assert has_unchecked_work(state)
    assert standing(replace(state, steps=[step(), step(helper="h")]))["think"][0] == 2
