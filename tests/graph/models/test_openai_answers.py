"""What is asked of OpenAI's models: one request for a call, and whole answers."""

from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.openai_answers import Reply
from tests.openai_server import Fault, openai_server

from daruma.graph.models import (
    ReadableAnswers,
    ScriptedChatModel,
    check_whole,
    per_loop_model,
)
from daruma.graph.models._faults import (
    BrokenAnswer,
)
from daruma.graph.models._openai_answers import HeardCalls


def chat_model(url: str = "http://127.0.0.1:9/v1") -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=url, api_key=SecretStr("k"), max_retries=2)


def soon(_: dict[str, Any]) -> Fault:
    return Fault(503, headers={"Retry-After-Ms": "1"})


def test_a_copy_makes_one_request_and_the_original_as_many_as_before() -> None:
    """The user's object is not ours to change."""
    with openai_server(soon) as server:
        original = chat_model(server.url)
        copy = per_loop_model(original)
        with pytest.raises(openai.InternalServerError):
            copy.invoke("hello")
        by_copy = len(server.requests)
        with pytest.raises(openai.InternalServerError):
            original.invoke("hello")

    assert (by_copy, len(server.requests)) == (1, 1 + 3)
    assert copy is not original
    assert copy.__dict__["max_retries"] == 0


@pytest.mark.long
@pytest.mark.parametrize(("given", "told"), [(None, True), (False, False)])
async def test_a_copy_tells_what_a_stream_cost(given: bool | None, told: bool) -> None:
    """MO-09: LangChain asks other servers than OpenAI's for it only if it was said; it may be."""
    with openai_server([Reply("hi", usage=(7, 3))]) as server:
        original = chat_model(server.url).model_copy(update={"stream_usage": given})
        chunks = [chunk async for chunk in per_loop_model(original).astream("hello")]

    assert any(chunk.usage_metadata for chunk in chunks) is told
    assert original.stream_usage is given


@pytest.mark.parametrize("error", [IndexError(), KeyError("choices"), TypeError(), ValueError()])
def test_what_can_not_be_read_is_a_broken_answer(error: Exception) -> None:
    """Of a model of OpenAI; of any other it is a bug as before."""
    with pytest.raises(BrokenAnswer, match="can not be read"), ReadableAnswers(chat_model()):
        raise error
    with pytest.raises(type(error)), ReadableAnswers(ScriptedChatModel(script=[])):
        raise error


@pytest.mark.parametrize(
    ("metadata", "whole"),
    [
        ({"finish_reason": "stop"}, True),
        ({"finish_reason": "length"}, True),
        ({"object": "response", "status": "completed"}, True),
        ({"finish_reason": None}, False),
        ({}, False),
    ],
)
def test_an_answer_ends_for_a_reason(metadata: dict[str, Any], whole: bool) -> None:
    """TL-17: an end without one is a stream that broke, politely."""
    answer = AIMessage("half an", response_metadata=metadata)
    check_whole(answer, ScriptedChatModel(script=[]))

    if whole:
        check_whole(answer, chat_model())
    else:
        with pytest.raises(BrokenAnswer, match="finish_reason"):
            check_whole(answer, chat_model())


# --- What is heard of a stream's calls, part by part.


def part(args: str | None, index: int | None, name: str | None = None) -> Any:
    return {"name": name, "args": args, "id": name and f"id of {name}", "index": index}


def unread(*parts: Any) -> list[Any]:
    """Hear the parts, each in a piece of its own, and return what was not read."""
    heard = HeardCalls()
    for each in parts:
        heard.hear(ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[each])))
    return [piece.message.additional_kwargs["sent_calls"] for piece in heard.unread()]


def test_nothing_is_added_to_an_answer_that_can_be_read() -> None:
    """Also where a call has no arguments at all."""
    assert unread(part('{"a": ', 0, "pay"), part("1}", 0), part(None, 1, "stop")) == []


def test_of_a_call_that_was_cut_off_all_are_told() -> None:
    """In their order, whole or not, however their parts were mixed."""
    parts = [part('{"a"', 0, "pay"), part("{", 1, "stop"), part(': "An', 0), part("}", 1)]

    assert unread(*parts) == [
        [
            {"id": "id of pay", "name": "pay", "args": '{"a": "An'},
            {"id": "id of stop", "name": "stop", "args": "{}"},
        ]
    ]


def test_parts_without_an_index_are_calls_of_their_own() -> None:
    """As LangChain takes them."""
    (calls,) = unread(part("{}", None, "pay"), part("{", None, "stop"))

    assert [call["args"] for call in calls] == ["{}", "{"]
