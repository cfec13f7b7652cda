"""What is heard of a stream's calls, part by part."""

from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from daruma.graph.models.openai_answers import HeardCalls
from daruma.tools.calls.parse import SENT_CALLS


def part(args: str | None, index: int | None, name: str | None = None) -> Any:
    return {"name": name, "args": args, "id": name and f"id of {name}", "index": index}


def unread(*parts: Any) -> list[Any]:
    """Hear the parts, each in a piece of its own, and return what was not read."""
    heard = HeardCalls()
    for each in parts:
        heard.hear(ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[each])))
    return [piece.message.additional_kwargs[SENT_CALLS] for piece in heard.unread()]


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
