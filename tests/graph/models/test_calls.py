"""One request to a chat model: the call, the tools that it offers, what is said."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableLambda
from langchain_core.tracers import Run
from langchain_core.tracers.context import collect_runs
from langchain_openai import ChatOpenAI
from pydantic import Field, PrivateAttr, SecretStr
from tests.parts import a_registry
from tests.scripted_runs import RecordingModel, say
from typing_extensions import override

from daruma.graph.models import (
    ModelUnavailable,
    Request,
    ScriptedChatModel,
    answer_within,
)
from daruma.graph.models._calls import (
    ToolOfferingModel,
    ask_model,
    with_images,
)
from daruma.state.settings import Tools
from daruma.tools.calls import Tool
from daruma.tools.model_requests import sendable

# --- A model called by itself answers as it does when LangChain calls it.

ASKED = sendable([HumanMessage("hi")])
PICTURE = {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "AAAA"}


class Told(FakeListChatModel):
    """A model that keeps what it was told, and how often LangChain summed up a call for others."""

    responses: list[str] = Field(default=["yes"])
    fails: bool = False
    streaming: bool = False
    _told: list[Any] = PrivateAttr(default_factory=list)
    _summed_up: int = PrivateAttr(default=0)

    @override
    def _combine_llm_outputs(self, _llm_outputs: list[Any], /) -> dict[str, Any]:
        self._summed_up += 1
        return super()._combine_llm_outputs(_llm_outputs)

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any
    ) -> ChatResult:
        self._told.append((list(messages), stop, run_manager.tags, run_manager.metadata, given))
        if self.fails:
            raise ConnectionError("gone")
        messages.clear()
        message = AIMessage("yes", usage_metadata=_USED, response_metadata={"finish": "stop"})
        return ChatResult(
            generations=[ChatGeneration(message=message)], llm_output={"model_name": "m"}
        )

    @override
    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for part in ("y", "es"):
            yield ChatGenerationChunk(message=AIMessageChunk(content=part))


_USED: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


class OfTheirOwn(FakeListChatModel):
    """A model whose author asks it in another way, and knows lists."""

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return AIMessage(f"{len(input)} and {input[-1].text}")

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return RunnableLambda(lambda messages: AIMessage(f"bound: {messages[-1].text}"))


async def by_itself(model: Told, messages: Sequence[BaseMessage] = ASKED, **options: Any) -> bool:
    """Ask, and say whether nobody but LangChain's own function for one request stood between."""
    await ask_model(model, messages, {}, options)
    return not model._summed_up


GIVEN: dict[str, dict[str, Any]] = {
    "as it is": {},
    "streams": {"streaming": True},
    "new content": {"output_version": "v1"},
    "tags and metadata": {"tags": ["mine"], "metadata": {"mine": 1}},
}
MESSAGES: dict[str, Any] = {
    "text": ASKED,
    "parts": sendable([HumanMessage(["a", {"type": "text", "text": "b"}])]),
    "picture": sendable([HumanMessage([PICTURE])]),
    "none": sendable([]),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("messages", MESSAGES.values(), ids=MESSAGES)
async def test_it_is_told_and_says_what_langchain_would_have(given: Any, messages: Any) -> None:
    """The messages, the options, what its run is known by; and an id for its answer."""
    ours, theirs = Told(**given), Told(**given)
    config: RunnableConfig = {"metadata": {"langgraph_node": "main"}, "tags": ["a"]}
    options: Any = {"tools": [1], "stop": ["."]}

    async def ask(_: object) -> Any:
        return (
            await ask_model(ours, messages, config, options),
            await theirs.ainvoke(messages, config, **options),
        )

    one, other = await RunnableLambda(ask).ainvoke({}, {"metadata": {"outer": 1}})

    assert with_any_id(one) == with_any_id(other)
    assert [each[:3] for each in ours._told] == [each[:3] for each in theirs._told]
    for (*_, said, left), (*_, known, right) in zip(ours._told, theirs._told, strict=True):
        assert left == right
        assert {**said, **known} == known
        assert not [each for each in known.keys() - said if not each.startswith("ls_")]


def with_any_id(message: AIMessage) -> tuple[Any, ...]:
    id_ = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", str(message.id))
    return id_, type(message), message.model_dump(exclude={"id"})


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
async def test_what_nobody_listens_to_is_called_by_itself(given: Any) -> None:
    """Whatever its settings are."""
    assert await by_itself(Told(**given))
    assert await by_itself(Told(**given), MESSAGES["parts"])


async def test_a_scripted_model_is_called_by_itself_with_its_metadata() -> None:
    """It finds its turn by that."""
    model = RecordingModel(script={"aside": [say("other")]})

    assert (
        await ask_model(model, ASKED, {"metadata": {"daruma_role": "aside"}}, {})
    ).text == "other"


class Listening(BaseCallbackHandler):
    """Notes who is told of models."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **_: Any) -> None:
        self.told.append(f"{serialized['name']}: {messages[0][0].content}")

    def on_llm_end(self, response: Any, **_: Any) -> None:
        self.told.append(response.generations[0][0].text)


async def test_handlers_of_the_model_are_told() -> None:
    listening = Listening()

    assert not await by_itself(Told(callbacks=[listening]))
    assert listening.told == ["Told: hi", "yes"]


async def test_handlers_of_the_run_around_it_are_told() -> None:
    """As in a node."""
    listening = Listening()

    async def ask(_: object) -> bool:
        return await by_itself(Told())

    assert not await RunnableLambda(ask).ainvoke({}, {"callbacks": [listening]})
    assert await RunnableLambda(ask).ainvoke({})
    assert listening.told == ["Told: hi", "yes"]


async def test_a_model_that_is_to_tell_on_the_screen_does() -> None:
    assert not await by_itself(Told(verbose=True))


async def test_a_picture_is_translated_by_langchain() -> None:
    """Models know the newest form of it only."""
    model = Told()

    assert not await by_itself(model, MESSAGES["picture"])
    assert model._told[0][0][0].content[0] != PICTURE


async def test_options_that_langchain_keeps_reach_no_model() -> None:
    """They are for traces."""
    model = Told()

    assert not await by_itself(model, ls_structured_output_format=None)
    assert model._told[0][-1] == {}


@pytest.mark.parametrize(
    "name", ["ainvoke", "_convert_input", "agenerate_prompt", "agenerate", "_agenerate_with_cache"]
)
async def test_what_a_model_does_otherwise_it_does(name: str) -> None:
    """An author's own, or a tracer's that is wrapped around it."""
    seen: list[str] = []

    def around(self: Any, *args: Any, **given: Any) -> Any:
        seen.append(name)
        return getattr(Told, name)(self, *args, **given)

    await ask_model(type("Wrapped", (Told,), {name: around})(), ASKED, {}, {})

    assert seen == [name]


async def test_what_is_wrapped_around_langchain_s_call_sees_our_models_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have a way of their own to it."""
    seen: list[str] = []
    inner = BaseChatModel.ainvoke

    async def traced(self: BaseChatModel, *args: Any, **given: Any) -> AIMessage:
        seen.append(type(self).__name__)
        return await inner(self, *args, **given)

    monkeypatch.setattr(BaseChatModel, "ainvoke", traced)
    await ask_model(RecordingModel(script=[say()]), ASKED, {}, {})
    await ask_model(Told(), ASKED, {}, {})

    assert seen == ["RecordingModel", "Told"]


async def test_an_answer_that_is_known_is_not_asked_for_again() -> None:
    """The model's cache is asked first, and told last."""
    cache, model = InMemoryCache(), Told()
    model.cache = cache
    for _ in range(2):
        said = await ask_model(model, ASKED, {}, {})

    assert said.text == "yes"
    assert len(model._told) == 1


async def test_the_model_s_limit_of_requests_holds() -> None:
    waited: list[bool] = []

    class Limit(InMemoryRateLimiter):
        @override
        async def aacquire(self, *, blocking: bool = True) -> bool:
            waited.append(blocking)
            return True

    await ask_model(Told(rate_limiter=Limit()), ASKED, {}, {})

    assert waited == [True]


async def test_what_a_model_does_to_its_messages_does_not_last() -> None:
    """They are asked with again if it fails."""
    await ask_model(Told(), ASKED, {}, {})

    assert [each.text for each in ASKED] == ["hi"]


class Panic(BaseException):
    """As of code in Rust that a model calls."""


@pytest.mark.parametrize("error", [Panic("at the disco"), asyncio.CancelledError()])
@pytest.mark.parametrize("heard", [False, True])
async def test_what_is_no_failure_is_raised_whoever_listens(
    error: BaseException, heard: bool
) -> None:
    """LangChain trips over it."""

    class Panicking(Told):
        @override
        async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
            raise error

    model = Panicking(callbacks=[Listening()] if heard else [])
    with pytest.raises(type(error)):
        await Request(ASKED).sent(model, {})


async def test_a_model_that_limits_its_own_time_ends_no_run() -> None:
    """Cancelling the task that one is in was the way to do that before Python 3.11."""

    class Limited(Told):
        @override
        async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                raise ConnectionError("too slow") from None
            raise AssertionError

    with pytest.raises(ConnectionError, match="too slow"):
        await answer_within(60, ask_model(Limited(), ASKED, {}, {}))


@pytest.mark.parametrize("made_of_it", [None, ConnectionError("cut")])
async def test_the_end_of_its_time_is_what_it_is(made_of_it: Exception | None) -> None:
    """Whatever a model makes of being cancelled: an answer of its own, or an error."""

    class Deaf(Told):
        @override
        async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            if made_of_it:
                raise made_of_it
            return ChatResult(generations=[ChatGeneration(message=AIMessage("half of"))])

    with pytest.raises(TimeoutError, match="no answer within"):
        await answer_within(0, ask_model(Deaf(), ASKED, {}, {}))


async def test_what_a_model_sets_in_its_context_stays_there() -> None:
    """The node goes on, and may ask another."""
    told: ContextVar[str] = ContextVar("told", default="nothing")

    class Telling(Told):
        @override
        async def _agenerate(self, *_: Any, **__: Any) -> ChatResult:
            told.set("much")
            return ChatResult(generations=[ChatGeneration(message=AIMessage("yes"))])

    assert await by_itself(Telling())
    assert told.get() == "nothing"


async def test_langchain_s_own_ways_are_handed_a_prompt() -> None:
    """It is as good as checked; and no copy of the history."""
    seen: list[Any] = []

    class Converting(Told):
        @override
        def _convert_input(self, model_input: Any) -> Any:
            seen.append(model_input)
            return super()._convert_input(model_input)

    await ask_model(Converting(), ASKED, {}, {})

    assert isinstance(seen[0], ChatPromptValue)
    assert seen[0].messages is ASKED


async def test_a_model_with_a_way_of_its_own_is_handed_a_list() -> None:
    """With tools and without."""
    model = OfTheirOwn(responses=[])
    shown = a_registry([say_it]).visible(Tools(), ())

    assert (await Request(ASKED).sent(model, {})).text == "1 and hi"
    assert (await ToolOfferingModel().asked(model, shown, ASKED, {})).text == "bound: hi"


def say_it(text: str) -> str:
    """Say it."""
    return text


# --- Offering tools to a model: bound once, and what listens is told what a binding would tell
# it.

ASKED_OFFERED = [HumanMessage("hi")]
NODE: RunnableConfig = {"metadata": {"langgraph_node": "main", "mine": 1}, "tags": ["b", "a"]}


def shout(text: str) -> str:
    """Say it."""
    return text


def tools() -> tuple[Tool, ...]:
    return a_registry([shout]).visible(Tools(), ())


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
    offered, model, other, (tool,) = ToolOfferingModel(), turns(3), turns(1), tools()

    for shown in ((tool,), (replace(tool),), (replace(tool, description="Whisper."),)):
        await offered.asked(model, shown, ASKED_OFFERED, {})
    await offered.asked(other, shown, ASKED_OFFERED, {})

    names = [each[0]["function"]["description"] for each in model._bound]
    assert names == ["Say it.", "Whisper."]
    assert len(other._bound) == 1


async def test_who_listens_is_told_what_a_binding_tells() -> None:
    """The metadata and tags of the node, the request's own, and the tools that were offered."""
    direct, bound = await run_of(ToolOfferingModel().asked), await run_of(through_binding)

    assert told(direct) == told(bound)
    assert direct.metadata["langgraph_node"] == "main"
    assert direct.metadata["daruma_role"] == "main"


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
        await ToolOfferingModel().asked(model, tools(), ASKED_OFFERED, {})

    assert [each.text for each in model.requests[0]] == sent
    assert seen.traced_runs[0].metadata.get("theirs") == theirs


async def test_a_model_that_takes_no_tools_is_told_of() -> None:
    """As LangChain's base class has it."""
    with pytest.raises(ModelUnavailable, match="FakeListChatModel takes no tools"):
        await ToolOfferingModel().asked(
            FakeListChatModel(responses=["hi"]), tools(), ASKED_OFFERED, {}
        )


async def through_binding(
    model: Any, shown: Sequence[Tool], messages: Any, metadata: dict[str, Any]
) -> AIMessage:
    bound: Runnable[Any, AIMessage] = model.bind_tools([tool.as_function() for tool in shown])
    return await bound.ainvoke(messages, {"metadata": metadata})


async def run_of(ask: Any) -> Run:
    """Return the model's run as it is told of, asked within a node."""

    async def node(_: Any) -> AIMessage:
        answer: AIMessage = await ask(turns(1), tools(), ASKED_OFFERED, {"daruma_role": "main"})
        return answer

    with collect_runs() as seen:
        await RunnableLambda(node).ainvoke({}, NODE)
    (run,) = seen.traced_runs
    (of_model,) = run.child_runs
    return of_model


def told(run: Run) -> tuple[Any, ...]:
    extra = {key: value for key, value in (run.extra or {}).items() if key != "metadata"}
    return run.name, sorted(run.tags or ()), run.metadata, extra, run.inputs


# --- Images of tools (FA-11).

IMAGE = {"type": "image", "mime_type": "image/png", "base64": "AAAA"}
TEXT = {"type": "text", "text": "drawn"}
ILLUSTRATED: list[BaseMessage] = [
    HumanMessage("Draw"),
    AIMessage("", tool_calls=[{"name": "draw", "args": {}, "id": each} for each in "ab"]),
    ToolMessage([TEXT, IMAGE], tool_call_id="a", name="draw"),
    ToolMessage("none", tool_call_id="b", name="draw"),
]


def test_images_of_tools_stay_where_the_model_takes_them() -> None:
    """What is not known of a model is not assumed."""
    assert with_images(ScriptedChatModel(script={}), ILLUSTRATED) == ILLUSTRATED


def test_openai_takes_images_of_tools_from_the_user_alone() -> None:
    """They follow the results, which have to stand together; bound tools change nothing."""
    model = ChatOpenAI(model="m", api_key=SecretStr("x"))
    for asked in (model, model.bind(tools=[])):
        *before, first, second, shown = with_images(asked, ILLUSTRATED)

        assert before == ILLUSTRATED[:2]
        assert (first.content, second.content) == ("drawn", "none")
        assert isinstance(shown, HumanMessage)
        said = {"type": "text", "text": "Images of the result of draw:"}
        assert shown.content == [said, IMAGE]


def test_a_model_that_sees_no_images_is_sent_none() -> None:
    """It would refuse the request, and every one after it."""
    model = ScriptedChatModel(script={}, profile={"image_inputs": False})
    shown = with_images(model, ILLUSTRATED)

    assert len(shown) == len(ILLUSTRATED)
    assert shown[2].content == "drawn"
