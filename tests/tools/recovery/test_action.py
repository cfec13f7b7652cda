"""Actions against a failure: choosing one, asking a person, carrying it out, recording it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.parts import a_call, a_context, a_failure, a_recovery, a_state, a_task, settings, taken
from tests.scripted_runs import shout

from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.failure import Carried, Failure, RecoveryAction, Strategy
from daruma.tools.recovery import (
    RecoveryCase,
    action_by_rule,
    advice,
    allowed_action,
    carried_out,
    close_on_bug,
    give_up_reason,
    hides,
    recovery_record,
    tool_of,
    with_assent,
)

# --- Which action may be taken: tables over the state, the failure and what was tried before.

FAILURE = a_failure()
LOOP = Failure(code="loop_detected", node="main", message="a loop", tool="shout")
AT_VERIFY = a_failure("workspace_conflict", "verify")
AT_PLAN = a_failure(node="plan")
BOTH = ("shout", "whisper")
ONE = ("shout",)
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
    assert action_by_rule(state(recoveries, tried), FAILURE).strategy == strategy


def test_another_failure_is_a_first_one() -> None:
    """RE-07 speaks of one failure; numbers do not make it another."""
    known = state(steps=taken("recover", signature=a_failure(message="request 7").signature))

    assert not give_up_reason(known, a_failure(message="other"))
    assert give_up_reason(known, a_failure(message="request 8"))


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
    assert (give_up_reason(state(steps=steps), failure) == "") is room


@pytest.mark.parametrize(
    ("action", "failure", "tools", "becomes"),
    [
        ("retry", LOOP, BOTH, "retry"),
        ("retry worn out", LOOP, BOTH, "alternative-tool"),
        ("retry worn out", FAILURE, BOTH, "retry"),
        ("retry worn out", LOOP, ONE, "escalate"),
        ("parameter-adjustment worn out", LOOP, BOTH, "alternative-tool"),
        ("alternative-tool", LOOP, BOTH, "alternative-tool"),
        ("alternative-tool", FAILURE, BOTH, "parameter-adjustment"),
        ("alternative-tool", AT_PLAN, BOTH, "parameter-adjustment"),
        ("alternative-tool", LOOP, ONE, "parameter-adjustment"),
        ("alternative-tool worn out", LOOP, ONE, "escalate"),
        ("alternative-tool whisper", LOOP, BOTH, "alternative-tool whisper"),
        ("alternative-tool sing", LOOP, BOTH, "alternative-tool"),
        ("escalate worn out", LOOP, BOTH, "escalate"),
        ("give-up worn out", LOOP, BOTH, "give-up"),
    ],
)
def test_what_can_not_be_done_becomes_what_comes_next(
    action: str, failure: Failure, tools: tuple[str, ...], becomes: str
) -> None:
    """RE-07, TL-06: a tool is tried again twice; another one has to be there, and shown.

    Hiding needs a tool that failed, and leaves one: a model would have nothing, or be told to call
    what it has not got.
    """
    chosen, _, rest = action.partition(" ")
    worn = rest == "worn out"
    strategy: Any = chosen
    given_ = RecoveryAction(strategy=strategy, tool_name=None if worn else rest or None)

    found = allowed_action(given_, state(steps=TRIED if worn else []), failure, tools)

    assert f"{found.strategy} {found.tool_name or ''}".strip() == becomes


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


def test_what_is_sure_enough_is_done_wherever_the_other_threshold_is() -> None:
    """RE-06: the one to execute goes first; with it at the lower end nobody is asked for a yes."""
    recovery = settings(fallback_chain={"recovery": {"execute_above": 0.3}}).fallback_chain.recovery
    said = [
        with_assent(RecoveryAction(strategy="retry", confidence=each), recovery).assent
        for each in (0.4, 0.3, 0.2)
    ]

    assert said == ["", "", "question"]


# --- What is on record of a recovery: only what was done counts as done.


@pytest.mark.parametrize(
    ("strategy", "carried", "tool", "hides"),
    [
        ("retry", "executed", "shout", ""),
        ("retry", "approved", "shout", ""),
        ("retry", "denied", "", ""),
        ("alternative-tool", "executed", "", "shout"),
        ("alternative-tool", "denied", "", ""),
        ("alternative-tool", "observed", "", ""),
        ("alternative-tool", "instructed", "", ""),
    ],
)
def test_only_what_was_done_tries_or_hides_a_tool(
    strategy: Strategy, carried: Carried, tool: str, hides: str
) -> None:
    """RE-07 counts by it, and the next request is made by it."""
    action = RecoveryAction(strategy=strategy, confidence=0.7, by="rule")
    found = recovery_record(action, LOOP, carried, BOTH)

    assert (found.tool, found.hides) == (tool, hides)
    assert (found.code, found.strategy) == ("loop_detected", strategy)
    assert (found.by, found.carried, found.confidence) == ("rule", carried, 0.7)


def test_a_bug_closes_what_was_opened_and_goes_on() -> None:
    """PL-04; a bug is never caught for good."""
    events: list[Event] = []
    with pytest.raises(ZeroDivisionError), close_on_bug(a_context(events=events)):
        raise ZeroDivisionError

    assert [event.to_dict()["carried"] for event in events] == ["failed"]


# --- What the state becomes when an action is carried out.


def case(failure: Failure = LOOP) -> RecoveryCase:
    return RecoveryCase(a_state(failure=failure, calls=(a_call(),)), failure, "t/1:recovery:0")


async def test_giving_up_changes_nothing() -> None:
    """The failure stays open: it goes on to emergency. EM-04: the first one stays the origin."""
    first = a_failure(message="first")
    met = replace(case(), state=a_state(failure=LOOP, origin=first))

    for given_, origin in ((case(), LOOP), (met, first)):
        update: Any = await carried_out(given_, RecoveryAction(strategy="give-up"), a_context())
        assert update == {"origin": origin, "action": None}
        again: Any = await carried_out(given_, RecoveryAction(strategy="retry"), a_context())
        assert again["origin"] == origin


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (a_failure("llm_failure"), False),
        (a_failure("timeout"), False),
        (a_failure("llm_failure", "plan"), False),
        (a_failure("timeout", "verify"), False),
        (LOOP, True),
    ],
)
async def test_who_was_never_heard_is_told_nothing(failure: Failure, told: bool) -> None:
    """A retry sends the request again just as it was."""
    update: Any = await carried_out(case(failure), RecoveryAction(strategy="retry"), a_context())

    assert bool(update["messages"]) is told


@pytest.mark.parametrize(
    ("strategy", "tool_name", "words"),
    [
        ("retry", None, "Try again."),
        ("alternative-tool", None, "The tool shout is not there for the next step: use another"),
        ("alternative-tool", "whisper", "use whisper."),
        ("parameter-adjustment", None, "Go on another way."),
    ],
)
def test_the_advice_names_what_failed_and_what_to_do(
    strategy: Strategy, tool_name: str | None, words: str
) -> None:
    """And why, in the words of who chose it."""
    action = RecoveryAction(strategy=strategy, tool_name=tool_name, reasoning="It is slow.")
    said = advice(LOOP, action)

    assert said.startswith("The last step failed: a loop.")
    assert words in said
    assert said.endswith("It is slow.")


@pytest.mark.parametrize(
    ("name", "parameters", "policy", "called"),
    [
        ("shout", None, {}, None),
        ("shout", {}, {}, {}),
        ("Shout", {"Text": "x"}, {}, {"text": "x"}),
        ("shout", {"text": "x"}, {"shout": "deny"}, {"text": "x"}),
    ],
    ids=["not given", "none", "mended", "denied"],
)
async def test_a_corrected_call_is_like_any_other(
    name: str, parameters: Any, policy: dict[str, str], called: dict[str, str] | None
) -> None:
    """TL-03, TL-11, TL-12: on record if it was mended, answered with an error if it can not run.

    Parameters that are not given are advice; given as none they are those of a tool that takes
    none. OpenAI refuses ids of calls with more than 40 characters.
    """
    events: list[Event] = []
    action = RecoveryAction(strategy="parameter-adjustment", tool_name=name, parameters=parameters)
    context = a_context(tools=[shout], events=events, given=settings(tools={"policy": policy}))
    long = replace(case(), message_id=f"{'f' * 36}/1:recovery:0")
    update: Any = await carried_out(long, action, context)

    message, *results = update["messages"]
    calls = [each for each in getattr(message, "tool_calls", []) if len(each["id"]) <= 40]
    assert [each["name"] for each in calls] == ([] if called is None else [name])
    assert [e.type for e in events] == ["answer_audited"] * (name == "Shout")
    if policy:
        assert [(each.tool_call_id, each.status) for each in results] == [(calls[0]["id"], "error")]
    elif called:
        assert [(each.name, each.args) for each in update["calls"]] == [("shout", called)]
