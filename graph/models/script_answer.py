"""A turn of a script as a message, and that message in chunks: in one place, so that they agree."""

import json
from collections.abc import Iterator, Sequence

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from daruma.graph.models.script import Call, Turn, Usage

CHARACTERS_PER_TOKEN = 4
"""OpenAI's rule of thumb for English text; good enough for a count that only has to be stable."""

_TEXT_CHUNKS = 3


def message_of(turn: Turn, *, role: str, number: int, asked: Sequence[BaseMessage]) -> AIMessage:
    """The turn as a message; its ids follow from role and number, so that replays are equal."""
    calls = [
        _call(call, call.id or f"call_{role}_{number}_{index}")
        for index, call in enumerate(turn.calls)
    ]
    usage = turn.usage or _estimate(turn, asked)
    return AIMessage(
        content=turn.text,
        id=f"msg_{role}_{number}",
        tool_calls=[call for call in calls if call["type"] == "tool_call"],
        invalid_tool_calls=[call for call in calls if call["type"] == "invalid_tool_call"],
        usage_metadata={
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
        },
        response_metadata={
            "finish_reason": turn.finish_reason or ("tool_calls" if calls else "stop"),
            "model_name": "scripted",
        },
    )


def chunks_of(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Text in a few pieces, a chunk for each call, then what only the end of a stream knows."""
    size = max(1, -(-len(message.text) // _TEXT_CHUNKS))
    for start in range(0, len(message.text), size):
        yield _chunk(AIMessageChunk(content=message.text[start : start + size], id=message.id))
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    broken = [(call["name"], call["args"], call["id"]) for call in message.invalid_tool_calls]
    for index, (name, args, id_) in enumerate([*calls, *broken]):
        part = tool_call_chunk(name=name, args=args, id=id_, index=index)
        yield _chunk(AIMessageChunk(content="", id=message.id, tool_call_chunks=[part]))
    yield _chunk(
        AIMessageChunk(
            content="",
            id=message.id,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )


def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message)


def _call(call: Call, id_: str) -> ToolCall | InvalidToolCall:
    if not isinstance(call.args, str):
        return tool_call(name=call.name, args=call.args, id=id_)
    try:
        args = json.loads(call.args)
    except ValueError:
        args = None
    if isinstance(args, dict):
        return tool_call(name=call.name, args=args, id=id_)
    return invalid_tool_call(name=call.name, args=call.args, id=id_)


def _estimate(turn: Turn, asked: Sequence[BaseMessage]) -> Usage:
    written = turn.text + "".join(call.model_dump_json() for call in turn.calls)
    read = sum(len(str(message.content)) for message in asked)
    return Usage(
        input=-(-read // CHARACTERS_PER_TOKEN), output=-(-len(written) // CHARACTERS_PER_TOKEN)
    )
