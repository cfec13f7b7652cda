"""A request is weighed before it is sent, where there is a budget for it."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from tests.parts import a_context, a_state, settings, taken
from tests.tools.context_window.histories import working

from daruma.state.channels import State
from daruma.state.failure import Failure, ModelFailed, TooLong
from daruma.state.steps import Asking, Compaction, ContextCost, Crowded, Step
from daruma.state.usage import Usage
from daruma.tools.context import Context
from daruma.tools.memory import MEMORY_TOOLS as TOOLS
from daruma.tools.model_requests import ESTIMATE
from daruma.tools.window import Draft, after_provider_refusal, check_size, too_large_update
from daruma.tools.window._view import factor_of

HISTORY = working(20)
NODES: tuple[Asking, ...] = ("main", "plan", "reflect")
DRAFT = Draft("main", [SystemMessage("Work.")], HISTORY)
LONG = ModelFailed("too long", too_long=TooLong())
COST = ContextCost(node="main", budget=1, before=2, after=1, saved={})
REFUSED = taken("compress", context_cost=replace(COST, refused=True))


def within(tokens: int | None) -> Context:
    return a_context(given=settings(llm={"context_window_tokens": tokens}))


def state(**values: Any) -> State:
    return a_state(**{"messages": HISTORY} | values)


def counted(asked: int, by_provider: int) -> list[Step]:
    usage = Usage(role="main", model="m", input_tokens=by_provider)
    return taken("think", counted=asked, usage=usage)


NOTED = replace(DRAFT, tail=[HumanMessage("changed " * 50)])
BEFORE = [replace(each, task_id="t/0") for each in taken("compress")]
LEARNT = Compaction(limit=2500, limit_of="t/1")
OWN, _ = check_size(DRAFT, state(), within(60_000))


@pytest.mark.parametrize(
    ("draft", "values", "window", "budget"),
    [
        (DRAFT, {}, None, None),
        (DRAFT, {}, 60_000, None),
        (DRAFT, {}, OWN + 1, None),
        (DRAFT, {"steps": counted(100, 150)}, OWN + 1, OWN + 1),  # by the provider's count
        (NOTED, {"steps": taken("summarise", "compress")}, 3000, 3000),
        (DRAFT, {"steps": BEFORE}, 3000, 3000),
        *((replace(DRAFT, node=node), {"compaction": LEARNT}, None, 2500) for node in NODES),
        (DRAFT, {"compaction": replace(LEARNT, limit_of="t/0")}, None, None),
    ],
)
def test_a_request_that_fits_is_counted(
    draft: Draft, values: dict[str, Any], window: int | None, budget: int | None
) -> None:
    """CX-01: another leads to a compaction, also right after one, such as for a note about files.

    What was learnt is the budget of its task from then on; without one nothing is counted.
    """
    count, wrong = check_size(draft, state(**values), within(window))

    assert isinstance(wrong, Crowded) is (budget is not None)
    assert getattr(wrong, "budget", None) == budget
    assert (count > 4000) is (window is not None or budget is not None)


def test_one_that_does_not_is_crowded() -> None:
    """With what of it can not be left out."""
    recalled = replace(DRAFT, recalled=[HumanMessage("word " * 500)], tail=[HumanMessage("Note")])

    _, wrong = check_size(recalled, state(), within(3000))

    assert isinstance(wrong, Crowded)
    assert (wrong.node, wrong.budget, wrong.factor, wrong.memory > 500) == ("main", 3000, 1.0, True)
    assert 10 < wrong.fixed < 30


def test_after_two_compactions_in_a_row_it_is_a_failure() -> None:
    """Nothing more can be done about it, and the machine must not go round."""
    twice = taken("compress", "summarise", "compress")

    _, wrong = check_size(DRAFT, state(steps=twice), within(3000))

    assert isinstance(wrong, Failure)
    assert "llm.context_window_tokens" in wrong.message
    assert too_large_update(wrong) == {"failure": wrong, "calls": ()}


def test_recalled_memory_is_sent_until_it_was_dropped_for_the_task() -> None:
    """The next task has its own."""
    draft = replace(DRAFT, recalled=[HumanMessage("You know this.")])

    assert draft.messages(state())[1].text == "You know this."
    assert draft.messages(state(compaction=Compaction(memory="t/1")))[1].text == "Do it"
    assert draft.messages(state(compaction=Compaction(memory="t/0")))[1].text == "You know this."


@pytest.mark.parametrize(
    ("steps", "factor"),
    [
        ([], 1.0),
        (counted(100, 150), 1.5),
        (counted(100, 50), 1.0),
        (counted(100, 900), 2.0),
        ([*counted(100, 150), *taken("verify")], 1.5),
        ([*counted(100, 150), *counted(100, 120)], 1.2),
        (counted(0, 150), 1.0),
    ],
)
def test_a_provider_can_only_raise_the_count(steps: list[Step], factor: float) -> None:
    """By its last answer whose request was counted; between 1 and 2."""
    assert factor_of(state(steps=steps)) == factor


@pytest.mark.parametrize(
    ("said", "part"),
    [(TooLong(), 0.7), (TooLong(4000, 8000), 0.35), (TooLong(2000), 0.0), (TooLong(0, 9000), 0.7)],
)
def test_a_refused_request_comes_again_a_good_deal_smaller(said: TooLong, part: float) -> None:
    """By what the provider named, in our own count; without a setting too."""
    context, at = within(None), state()
    sent = check_size(DRAFT, at, within(60_000))[0]

    found = after_provider_refusal(DRAFT, at, context, ModelFailed("too long", too_long=said))

    assert found is not None
    assert found.refused == "too long"
    assert found.budget == (int(part * sent) if part else 1400)


@pytest.mark.parametrize(
    ("steps", "again"),
    [
        ([], True),
        (REFUSED, False),
        ([*REFUSED, *taken("think", ok=False)], False),
        ([*REFUSED, *taken("think")], True),
        (taken("compress", context_cost=COST), True),
    ],
)
def test_a_second_refusal_is_a_failure_like_any_other(steps: list[Step], again: bool) -> None:
    """Until the node was answered in between."""
    found = after_provider_refusal(DRAFT, state(steps=steps), within(None), LONG)

    assert (found is not None) == again
    assert after_provider_refusal(DRAFT, state(), within(None), ModelFailed("down")) is None


def test_the_tools_that_are_offered_are_part_of_a_request() -> None:
    """Their definitions can not be left out, and the failure says how many there are."""
    plain, _ = check_size(DRAFT, state(), within(60_000))
    offered = replace(DRAFT, tools=TOOLS)

    own, _ = check_size(offered, state(), within(60_000))
    _, wrong = check_size(offered, state(), within(3000))

    assert own == plain + ESTIMATE.of_tools(TOOLS) > plain + 20
    assert isinstance(wrong, Crowded)
    assert wrong.tools == len(TOOLS)


@pytest.mark.parametrize(
    ("compaction", "setting", "said"),
    [
        (None, 3000, "of llm.context_window_tokens: raise it"),
        (Compaction(limit=2500, limit_of="t/1"), 3000, "the provider was found to take"),
        (Compaction(limit=2500, limit_of="t/1"), None, "the provider was found to take"),
    ],
)
def test_a_failure_names_the_limit_that_was_met(
    compaction: Compaction | None, setting: int | None, said: str
) -> None:
    """A setting that is not set can not be raised."""
    at = state(steps=taken("compress", "compress"), compaction=compaction)

    _, wrong = check_size(DRAFT, at, within(setting))

    assert isinstance(wrong, Failure)
    assert said in wrong.message
