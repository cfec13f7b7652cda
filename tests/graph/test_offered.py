"""Offering tools to a model: bound once, and what listens is told what a binding would tell it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableLambda,
)
from langchain_core.tracers import Run
from langchain_core.tracers.context import collect_runs
from pydantic import PrivateAttr
from tests.scripted_runs import RecordingModel, say
from typing_extensions import override

from daruma.graph.models.calls import Offered
from daruma.graph.models.faults import ModelUnavailable
from daruma.state.settings.tools import Tools
from daruma.tools.calls.registry import Registry
from daruma.tools.calls.tool import Tool

ASKED = [HumanMessage("hi")]
NODE: RunnableConfig = {"metadata": {"langgraph_node": "main", "mine": 1}, "tags": ["b", "a"]}


def shout(text: str) -> str:
    """Say it."""
    return text


def tools() -> tuple[Tool, ...]:
    return Registry([shout]).visible(Tools(), ())


class Binding(RecordingModel):
    """A model that counts its bindings, and gives each of them a config where it is told to."""

    _bound: list[Any] = PrivateAttr(default_factory=list)
    _config: RunnableConfig | None = PrivateAttr(default=None)

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        self._bound.append(tools)
        bound: Any = super().bind_tools(tools, **options)
        return bound.with_config(self._config) if self._config else bound


def turns(count: int) -> Binding:
    return Binding(script=[say()] * count)


async def test_a_model_is_bound_once_for_the_same_tools() -> None:
    """Making the schemas takes time for each tool; other tools, or another model, are bound."""
    offered, model, other, (tool,) = Offered(), turns(3), turns(1), tools()

    for shown in ((tool,), (replace(tool),), (replace(tool, description="Whisper."),)):
        await offered.asked(model, shown, ASKED, {})
    await offered.asked(other, shown, ASKED, {})

    names = [each[0]["function"]["description"] for each in model._bound]
    assert names == ["Say it.", "Whisper."]
    assert len(other._bound) == 1


async def test_who_listens_is_told_what_a_binding_tells() -> None:
    """The metadata and tags of the node, the request's own, and the tools that were offered."""
    direct, bound = await run_of(Offered().asked), await run_of(through_binding)

    assert told(direct) == told(bound)
    assert direct.metadata["langgraph_node"] == "main"
    assert direct.metadata["daruma_role"] == "main"


async def test_a_binding_with_a_config_of_its_own_keeps_it() -> None:
    """It is asked as it is."""
    model = turns(1)
    model._config = {"metadata": {"theirs": 2}}
    with collect_runs() as seen:
        await Offered().asked(model, tools(), ASKED, {"daruma_role": "main"})

    assert seen.traced_runs[0].metadata["theirs"] == 2


class Prefaced(RunnableBinding[Any, AIMessage]):
    """A binding with a way of its own to ask."""

    @override
    async def ainvoke(self, input: Any, *given: Any, **options: Any) -> AIMessage:
        return await super().ainvoke([*input, HumanMessage("please")], *given, **options)


def made_when_asked(_: RunnableConfig) -> RunnableConfig:
    return {"metadata": {"theirs": 2}}


@pytest.mark.parametrize(
    ("kind", "given", "sent", "theirs"),
    [
        (RunnableBinding, {"config_factories": [made_when_asked]}, ["hi"], 2),
        (Prefaced, {}, ["hi", "please"], None),
    ],
)
async def test_a_binding_that_does_more_is_asked_as_it_is(
    kind: Any, given: dict[str, Any], sent: list[str], theirs: int | None
) -> None:
    """What it makes of a request is its own affair."""

    class Otherwise(Binding):
        @override
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return kind(bound=self, **given)

    model = Otherwise(script=[say()])
    with collect_runs() as seen:
        await Offered().asked(model, tools(), ASKED, {})

    assert [each.text for each in model.requests[0]] == sent
    assert seen.traced_runs[0].metadata.get("theirs") == theirs


async def test_a_model_that_takes_no_tools_is_told_of() -> None:
    """As LangChain's base class has it."""
    with pytest.raises(ModelUnavailable, match="FakeListChatModel takes no tools"):
        await Offered().asked(FakeListChatModel(responses=["hi"]), tools(), ASKED, {})


async def through_binding(
    model: Any, shown: Sequence[Tool], messages: Any, metadata: dict[str, Any]
) -> AIMessage:
    bound: Runnable[Any, AIMessage] = model.bind_tools([tool.as_function() for tool in shown])
    return await bound.ainvoke(messages, {"metadata": metadata})


async def run_of(ask: Any) -> Run:
    """Return the model's run as it is told of, asked within a node."""

    async def node(_: Any) -> AIMessage:
        answer: AIMessage = await ask(turns(1), tools(), ASKED, {"daruma_role": "main"})
        return answer

    with collect_runs() as seen:
        await RunnableLambda(node).ainvoke({}, NODE)
    (run,) = seen.traced_runs
    (of_model,) = run.child_runs
    return of_model


def told(run: Run) -> tuple[Any, ...]:
    extra = {key: value for key, value in (run.extra or {}).items() if key != "metadata"}
    return run.name, sorted(run.tags or ()), run.metadata, extra, run.inputs
