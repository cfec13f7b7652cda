"""What is shown of the history is made less, and whoever asked for it asks again."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import Says, a_context, a_state, settings, taken
from tests.tools.context_window.asked_models import Models, context_of, state_of
from tests.tools.context_window.histories import working

from daruma.nodes.compress import compress
from daruma.nodes.main import main
from daruma.nodes.plan import plan
from daruma.nodes.reflect import reflect
from daruma.state.events import ContextCompacted, Event
from daruma.state.failure import ModelFailed, TooLong
from daruma.state.steps import Asking, Compaction, ContextCost, Crowded
from daruma.state.usage import Attempt, Failover

CROWDED = Crowded(node="main", budget=2000, fixed=300)
HISTORY = working(40)


@pytest.mark.parametrize("node", [main, plan, reflect])
async def test_a_request_that_does_not_fit_is_made_smaller(node: Any) -> None:
    """CX-01: one over its budget is not made; one refused as too long was no answer (BU-01)."""
    ask, given = Says("Done."), settings(llm={"context_window_tokens": 2000})
    state = a_state(messages=[HumanMessage("word " * 3000, id="m")])

    over = await node(state, a_context(ask=ask, given=given))
    refused = await node(state, a_context(ModelFailed("too long", too_long=TooLong(1000))))

    assert (over["crowded"].node, [*over], ask.requests) == (node.__name__, ["crowded"], [])
    assert (refused["crowded"].budget, [*refused]) == (700, ["crowded"])


@pytest.mark.parametrize("node", ["main", "plan", "reflect"])
async def test_it_goes_back_to_whoever_asked(node: Asking) -> None:
    """With a compaction under which the request fits; the history stays as it is."""
    state = replace(state_of(HISTORY), crowded=replace(CROWDED, node=node))

    update = await compress(state, context_of(Models()))

    assert isinstance(update["compaction"], Compaction)
    assert (update["compaction"].asked_by, update["crowded"]) == (node, None)
    assert "messages" not in update
    assert "failure" not in update


async def test_each_call_has_its_step_and_the_whole_has_one() -> None:
    """CX-04: what a model was paid for is on record, used or not; FA-04: what it saved is told."""
    state = replace(state_of(HISTORY), crowded=CROWDED, steps=taken("summarise", "compress"))
    models, events = Models(auxiliary="blank"), list[Event]()

    update = await compress(state, replace(context_of(models), emit=events.append))

    *calls, done = update["steps"]
    assert models.numbers[:2] == [1, 2]
    assert [step.kind for step in calls] == ["summarise"] * len(models.asked)
    assert [step.ok for step in calls] == [False] + [True] * (len(calls) - 1)
    assert all(step.usage for step in calls)
    assert (done.kind, done.ok, done.usage) == ("compress", True, None)
    assert isinstance(done.context_cost, ContextCost)
    assert events[-1] == ContextCompacted(node="main", cost=done.context_cost.to_dict())


async def test_what_can_not_be_made_to_fit_ends_the_work() -> None:
    """The failure is of the node whose request it was."""
    crowded = replace(CROWDED, fixed=5000, node="plan", tools=2)

    update = await compress(replace(state_of(HISTORY), crowded=crowded), context_of(Models()))

    assert update["failure"] is not None
    assert (update["failure"].node, update["failure"].code) == ("plan", "bad_request")
    assert not update["steps"][-1].ok


async def test_the_refusal_that_led_to_it_is_on_record() -> None:
    """The request was made, and answered with no."""
    refusal = Failover(
        requested="m", attempts=(Attempt(model="m", error="too long", then="gave up"),)
    )
    crowded = replace(CROWDED, refused="too long", failover=refusal)

    update = await compress(replace(state_of(HISTORY), crowded=crowded), context_of(Models()))

    audit = update["steps"][-1].audit
    assert audit is not None
    assert audit.failover == refusal


async def test_without_a_request_that_is_too_large_there_is_nothing_to_do() -> None:
    """The table does not lead here then."""
    with pytest.raises(LookupError, match="no request"):
        await compress(state_of(HISTORY), a_context())
