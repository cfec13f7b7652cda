"""Anthropic's messages API in OpenAI's terms: requests as they come in, answers as they go out."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]


def as_openai(request: Json) -> dict[str, Any]:
    """Return what OpenAI's API would have been asked."""
    system = request.get("system")
    head = [{"role": "system", "content": _text(system)}] if system else []
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": tool["input_schema"],
            },
        }
        for tool in request.get("tools", ())
    ]
    said = [each for message in request["messages"] for each in _messages(message)]
    asked = {"model": request["model"], "messages": [*head, *said]}
    asked |= {"stream": True} if request.get("stream") else {}
    return asked | ({"tools": tools} if tools else {})


def _messages(message: Json) -> Iterator[dict[str, Any]]:
    """Yield a message; results of tools are parts of the user's here, and messages there."""
    parts = message["content"]
    parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
    for part in parts:
        if part["type"] == "tool_result":
            content = _text(part.get("content") or "")
            yield {"role": "tool", "tool_call_id": part["tool_use_id"], "content": content}
    calls = [
        {
            "id": part["id"],
            "type": "function",
            "function": {"name": part["name"], "arguments": json.dumps(part["input"])},
        }
        for part in parts
        if part["type"] == "tool_use"
    ]
    text = _text([part for part in parts if part["type"] == "text"])
    if text or calls:
        yield {"role": message["role"], "content": text} | ({"tool_calls": calls} if calls else {})


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def as_anthropic(answer: Json) -> Json:
    """Return an answer of OpenAI's API as Anthropic's would have given it."""
    (choice,) = answer["choices"]
    said = choice["message"]
    text = [{"type": "text", "text": said["content"]}] if said["content"] else []
    calls = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"]),
        }
        for call in said.get("tool_calls", ())
    ]
    usage = answer["usage"]
    kept = usage.get("prompt_tokens_details", {"cached_tokens": 0, "cache_write_tokens": 0})
    return {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": answer["model"],
        "content": [*text, *calls],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage["prompt_tokens"] - sum(kept.values()),
            "cache_read_input_tokens": kept["cached_tokens"],
            "cache_creation_input_tokens": kept["cache_write_tokens"],
            "output_tokens": usage["completion_tokens"],
        },
    }


def as_events(answer: Json) -> Iterator[tuple[str, Json]]:
    """Yield an answer of Anthropic's API as the events of a stream, each with its name."""
    yield "message_start", {"message": {**answer, "content": [], "stop_reason": None}}
    for index, part in enumerate(answer["content"]):
        whole = {k: v for k, v in part.items() if k not in ("text", "input")}
        empty: dict[str, Any] = {"text": ""} if part["type"] == "text" else {"input": {}}
        yield "content_block_start", {"index": index, "content_block": whole | empty}
        told = (
            {"type": "text_delta", "text": part["text"]}
            if part["type"] == "text"
            else {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        )
        yield "content_block_delta", {"index": index, "delta": told}
        yield "content_block_stop", {"index": index}
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": answer["usage"]}
    yield "message_stop", {}
