"""Asking a model: one system message, what it cost, and every failure as one kind."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tracers.context import collect_runs
from langgraph.constants import TAG_NOSTREAM
from tests.parts import at_once
from tests.scripted_runs import RecordingModel, say, unclosed

from daruma.graph.asker import Asker
from daruma.graph.models.by_role import Models
from daruma.graph.models.faults import ScriptExhausted
from daruma.state.events import Event
from daruma.state.failure import ModelFailed
from daruma.state.settings.tools import Tools
from daruma.state.usage import Usage
from daruma.tools.calls.registry import Registry
from daruma.tools.context import EXACT, Answer
from daruma.tools.window.provider_messages import sendable

HELLO: Sequence[BaseMessage] = [SystemMessage("a"), HumanMessage("hi"), SystemMessage("b")]


async def ask(model: Any, events: list[Event] | None = None, **options: Any) -> Answer:
    emit = (events if events is not None else []).append
    asker = Asker(Models(model), sleep=at_once)
    return await asker("main", HELLO, call=options.pop("call", 0), emit=emit, **options)


class APITimeoutError(Exception):
    """A provider's own class."""


class Failing(RecordingModel):
    """A model whose every call raises."""

    def answer(self, *_: Any, **__: Any) -> AIMessage:
        raise self.script[0]["error"]

    def model_post_init(self, context: Any, /) -> None:
        pass


async def test_system_messages_are_one_at_the_head() -> None:
    """TL-20: in their order."""
    model = RecordingModel(script=[say()])
    await ask(model)

    assert [(m.type, m.text) for m in model.requests[0]] == [("system", "a\n\nb"), ("human", "hi")]
    assert sendable([HumanMessage("hi")]) == [HumanMessage("hi")]


async def test_the_answer_comes_with_its_cost() -> None:
    """MO-07: by role, with the model's name."""
    answer = await ask(RecordingModel(script=[say() | {"usage": {"input": 7, "output": 3}}]))

    assert answer.message.text == "Done."
    assert answer.usage == Usage(
        role="main", model="scripted", input_tokens=7, output_tokens=3, usd=0.0
    )


async def test_tools_are_offered_only_if_there_are_some() -> None:
    """Providers refuse an empty list."""
    (tool,) = Registry([len_]).visible(Tools(), ())

    await ask(RecordingModel(script=[say() | {"expect_tools": ["len_"]}]), tools=[tool])
    await ask(RecordingModel(script=[say() | {"expect_tools": []}]))


def len_(text: str) -> int:
    """Count it."""
    return len(text)


@pytest.mark.parametrize(
    ("error", "code", "said", "cause"),
    [
        (ValueError("no\n  way"), "llm_failure", "no way", "ValueError"),
        (TimeoutError(), "timeout", "scripted: TimeoutError", "TimeoutError"),
        (APITimeoutError("slow"), "timeout", "scripted: slow", "APITimeoutError"),
        (
            ConnectionError("x" * 900),
            "llm_failure",
            f"scripted: no connection: {'x' * 485}",
            "ConnectionError",
        ),
    ],
)
async def test_every_failure_is_of_one_kind(
    error: Exception, code: str, said: str, cause: str
) -> None:
    """EM-02: in one line, with the provider's own class named and the exception behind it."""
    with pytest.raises(ModelFailed) as raised:
        await ask(Failing(script=[{"error": error}]))

    assert (raised.value.code, str(raised.value), raised.value.cause) == (code, said, cause)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("model", [None, "nonsense:x", "scripted:/no/such/file.yaml"])
async def test_a_model_that_is_not_there_is_a_failure_of_the_model(model: Any) -> None:
    """EM-02: not a bug of ours to be reported, but settings to be mended."""
    with pytest.raises(ModelFailed) as raised:
        await ask(model)

    assert raised.value.final


async def test_a_model_that_takes_no_tools_is_told_in_words() -> None:
    """And the next one is asked, as it is never of use."""
    (tool,) = Registry([len_]).visible(Tools(), ())

    with pytest.raises(ModelFailed, match="FakeListChatModel takes no tools") as raised:
        await ask(FakeListChatModel(responses=["hi"]), tools=[tool])

    assert raised.value.final


async def test_a_sampled_answer_is_kept_from_watchers() -> None:
    """LangGraph shows no message of a call that is tagged so."""
    model = RecordingModel(script=[say(), say()])
    with collect_runs() as traced:
        await ask(model)
        await ask(model, call=1, sampling=EXACT)

    assert [TAG_NOSTREAM in (run.tags or []) for run in traced.traced_runs] == [False, True]


async def test_a_script_that_does_not_fit_is_a_bug() -> None:
    """No recovery may hide it."""
    with pytest.raises(ScriptExhausted):
        await ask(RecordingModel(script=[]))


class Silent(RecordingModel):
    """A model that never answers; it tells when it was asked."""

    async def _agenerate(self, *_: Any, **__: Any) -> Any:
        self.script["asked"].set()
        await asyncio.Event().wait()

    def model_post_init(self, context: Any, /) -> None:
        pass


async def test_a_cancelled_call_stays_cancelled_and_is_closed() -> None:
    """EM-02 and PL-04: a cancellation is never classified, and its milestone is closed."""
    events: list[Event] = []
    asked = asyncio.Event()
    task = asyncio.create_task(ask(Silent(script={"asked": asked}), events))
    await asked.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert events[-1].to_dict()["error"] == "CancelledError"
    assert unclosed(event.to_dict() for event in events) == []


async def test_a_call_is_told_from_start_to_end() -> None:
    """PL-04: with what it cost, or why it failed."""
    good: list[Event] = []
    bad: list[Event] = []
    await ask(RecordingModel(script=[say() | {"usage": {"input": 7, "output": 3}}]), good)
    with pytest.raises(ModelFailed):
        await ask(Failing(script=[{"error": ValueError("no")}]), bad)

    assert [event.type for event in good] == ["model_call_started", "model_call_completed"]
    assert good[1].to_dict() | {"seconds": 0} == {
        "type": "model_call_completed",
        "node": "main",
        "model": "scripted",
        "seconds": 0,
        "input_tokens": 7,
        "output_tokens": 3,
        "error": None,
    }
    assert [event.to_dict().get("error") for event in bad] == [None, "no", "no"]


async def test_a_call_that_breaks_off_is_closed() -> None:
    """PL-04: also when what it raised is nobody's to expect."""
    events: list[Event] = []
    with pytest.raises(ScriptExhausted):
        await ask(RecordingModel(script=[]), events)

    assert unclosed(event.to_dict() for event in events) == []


async def test_the_number_of_the_call_is_the_scripts_turn() -> None:
    """A process that takes a thread over goes on at the right turn."""
    answer = await ask(RecordingModel(script=[say("first"), say("second")]), call=1)

    assert answer.message.text == "second"


async def test_a_model_that_cancels_itself_is_no_failure() -> None:
    """EM-02: LangChain trips over a cancellation that a model raises, and hides it."""
    model = Failing(script=[{"error": asyncio.CancelledError("called off")}])

    with pytest.raises(asyncio.CancelledError):
        await ask(model)


async def test_what_is_kept_of_an_error_can_be_printed() -> None:
    """A lone surrogate in a provider's words would break whoever prints the result."""
    model = Failing(script=[{"error": ValueError("a\ud800b")}])

    with pytest.raises(ModelFailed, match="a b"):
        await ask(model)
