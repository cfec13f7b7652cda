"""Which action may be taken: tables over the state, the failure and what was tried before."""

from typing import Any

import pytest
from tests.parts import a_failure, a_recovery, a_state, a_task, settings, taken

from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.recovery.action import allowed, by_rule, hides, hopeless, tool_of, with_assent

FAILURE = a_failure()
LOOP = Failure(code="loop_detected", node="main", message="a loop", tool="shout")
AT_VERIFY = a_failure("workspace_conflict", "verify")
AT_PLAN = a_failure(node="plan")
BOTH = ("shout", "whisper")
TRIED = taken("recover", recovery=a_recovery("retry", tool="shout")) * 2


def state(recoveries: int = 1, tried: int = 0, **values: Any) -> State:
    steps = taken("recover", signature=FAILURE.signature) * tried
    return a_state(**{"task": a_task(limits={"recoveries": recoveries}), "steps": steps} | values)


@pytest.mark.parametrize(
    ("recoveries", "tried", "strategy"),
    [
        (0, 0, "give-up"),
        (1, 0, "parameter-adjustment"),
        (1, 1, "give-up"),
        (2, 1, "escalate"),
        (2, 2, "give-up"),
    ],
)
def test_the_rule_follows_from_the_record(recoveries: int, tried: int, strategy: str) -> None:
    """RE-05 and RE-07."""
    assert by_rule(state(recoveries, tried), FAILURE).strategy == strategy


def test_another_failure_is_a_first_one() -> None:
    """RE-07 speaks of one failure; numbers do not make it another."""
    known = state(steps=taken("recover", signature=a_failure(message="request 7").signature))

    assert not hopeless(known, a_failure(message="other"))
    assert hopeless(known, a_failure(message="request 8"))


@pytest.mark.parametrize(
    ("failure", "steps", "room"),
    [
        (FAILURE, taken("think", "think"), True),
        (FAILURE, taken("think", "think", "think"), False),
        (AT_VERIFY, taken("verify"), True),
        (AT_VERIFY, taken("verify", "verify"), False),
        (AT_VERIFY, taken("verify", "think", "think", "think"), False),
        (AT_PLAN, taken("plan", "plan", ok=False), True),
        (AT_PLAN, taken("plan", "plan", "plan", ok=False), False),
        (AT_PLAN, taken("think", "think", "think"), True),
    ],
)
def test_there_has_to_be_budget_to_go_on_with(failure: Failure, steps: Any, room: bool) -> None:
    """BU-01: without it nothing that is chosen could be done."""
    assert (hopeless(state(steps=steps), failure) == "") is room


@pytest.mark.parametrize(
    ("action", "failure", "given", "becomes"),
    [
        ("retry", LOOP, {}, "retry"),
        ("retry", LOOP, {"steps": TRIED}, "alternative-tool"),
        ("retry", FAILURE, {"steps": TRIED}, "retry"),
        ("parameter-adjustment", LOOP, {"steps": TRIED}, "alternative-tool"),
        ("alternative-tool", LOOP, {}, "alternative-tool"),
        ("alternative-tool", FAILURE, {}, "parameter-adjustment"),
        ("alternative-tool", AT_PLAN, {}, "parameter-adjustment"),
        ("escalate", LOOP, {"steps": TRIED}, "escalate"),
        ("give-up", LOOP, {"steps": TRIED}, "give-up"),
    ],
)
def test_what_can_not_be_done_becomes_what_comes_next(
    action: Strategy, failure: Failure, given: dict[str, Any], becomes: str
) -> None:
    """RE-07: a tool is tried again twice; hiding needs a tool that failed."""
    found = allowed(RecoveryAction(strategy=action), state(**given), failure, BOTH)

    assert found.strategy == becomes


def test_a_tool_that_is_not_shown_is_not_recommended() -> None:
    """TL-06: a model would be told to call what it has not got."""
    action = RecoveryAction(strategy="alternative-tool", tool_name="hidden")

    found = allowed(action, state(), LOOP, BOTH)

    assert (found.strategy, found.tool_name) == ("alternative-tool", None)


def test_the_only_tool_is_not_hidden() -> None:
    """The model would be left with nothing; worn out, it is a person's turn."""
    other = RecoveryAction(strategy="alternative-tool")
    again = RecoveryAction(strategy="retry")

    assert allowed(other, state(), LOOP, ("shout",)).strategy == "parameter-adjustment"
    assert allowed(again, state(steps=TRIED), LOOP, ("shout",)).strategy == "escalate"


def test_another_tool_that_is_not_there_is_no_way_round_the_limit() -> None:
    """RE-07: what is left of it is one more try of the worn out tool."""
    other = RecoveryAction(strategy="alternative-tool")

    assert allowed(other, state(steps=TRIED), LOOP, ("shout",)).strategy == "escalate"


def test_the_tool_that_is_to_be_used_is_not_hidden() -> None:
    """A model that names the failed tool as the other one means that tool."""
    action = RecoveryAction(strategy="alternative-tool", tool_name="shout")

    assert hides(action, LOOP, BOTH) == ""


@pytest.mark.parametrize(
    ("strategy", "tool_name", "tool"),
    [
        ("retry", None, "shout"),
        ("retry", "whisper", "whisper"),
        ("parameter-adjustment", "whisper", "whisper"),
        ("alternative-tool", "whisper", ""),
        ("escalate", None, ""),
    ],
)
def test_the_tool_that_is_tried_again(strategy: Strategy, tool_name: str | None, tool: str) -> None:
    """What RE-07 counts by."""
    assert tool_of(RecoveryAction(strategy=strategy, tool_name=tool_name), LOOP) == tool


@pytest.mark.parametrize(
    ("strategy", "confidence", "assent"),
    [
        ("retry", 0.8, ""),
        ("retry", 0.5, "approval"),
        ("retry", 0.49, "question"),
        ("escalate", 1.0, "question"),
        ("escalate", 0.6, "question"),
        ("give-up", 0.6, "approval"),
        ("give-up", 1.0, ""),
    ],
)
def test_assent_follows_from_confidence(strategy: Strategy, confidence: float, assent: str) -> None:
    """RE-06; to escalate is to ask, however sure."""
    recovery = settings().fallback_chain.recovery
    action = RecoveryAction(strategy=strategy, confidence=confidence)

    assert with_assent(action, recovery).assent == assent


@pytest.mark.parametrize(("named", "kept"), [("whisper", "whisper"), ("sing", None)])
def test_another_tool_is_one_that_there_is(named: str, kept: str | None) -> None:
    """Else the model would be told to use what it can not find."""
    action = RecoveryAction(strategy="alternative-tool", tool_name=named)

    assert allowed(action, state(), LOOP, BOTH).tool_name == kept


def test_what_is_sure_enough_is_done_wherever_the_other_threshold_is() -> None:
    """RE-06: the one to execute goes first; with it at the lower end nobody is asked for a yes."""
    recovery = settings(fallback_chain={"recovery": {"execute_above": 0.3}}).fallback_chain.recovery
    said = [
        with_assent(RecoveryAction(strategy="retry", confidence=each), recovery).assent
        for each in (0.4, 0.3, 0.2)
    ]

    assert said == ["", "", "question"]
