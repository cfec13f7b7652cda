"""The server's rules tell legal requests from illegal ones."""

import json
from typing import Any

import pytest
from tests.openai_rules import violations

USER = {"role": "user", "content": "hello"}
SYSTEM = {"role": "system", "content": "be brief"}


def call(id_: str = "c1", name: str = "view", arguments: str = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: dict[str, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answered(id_: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "done"}


def tool(name: str = "view") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def request(*messages: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages or (USER,))} | options


@pytest.mark.parametrize(
    "legal",
    [
        request(),
        request(SYSTEM, USER),
        request({"role": "developer", "content": [{"type": "text", "text": "x"}]}, USER),
        request(USER, calling(call()), answered(), USER),
        request(USER, calling(call("a"), call("b")), answered("b"), answered("a")),
        request(USER, calling(call()), answered(), calling(call()), answered()),
        request({"role": "user", "content": [{"type": "text", "text": "look"}]}),
        request(tools=[tool()], tool_choice="auto", parallel_tool_calls=False),
        request(tools=[tool()], tool_choice=tool()),
        request(stream=True, stream_options={"include_usage": True}),
        request({"role": "user", "content": "as JSON"}, response_format={"type": "json_object"}),
    ],
    ids=lambda body: json.dumps(body)[:60],
)
def test_what_the_api_accepts_is_legal(legal: dict[str, Any]) -> None:
    """A strict server that refused legal requests would be worth nothing."""
    assert violations(legal) == []


@pytest.mark.parametrize(
    ("illegal", "complaint"),
    [
        ({"messages": [USER]}, "model"),
        ({"model": "m", "messages": []}, "messages"),
        (request(call_metadata={}), "unrecognized request argument: call_metadata"),
        (request(USER, SYSTEM), "only at the head"),
        (request(SYSTEM, SYSTEM), "only at the head"),
        (request({"role": "critic", "content": "x"}), "unknown role"),
        (request({"role": "user", "content": None}), "content"),
        (request({"role": "user", "content": []}), "content"),
        (request({"role": "user", "content": [{"type": "tool_use", "text": "x"}]}), "tool_use"),
        (request({"role": "user", "content": [{"type": "text"}]}), "content"),
        (request({"role": "user", "content": ["x"]}), "content"),
        (request({"role": "assistant", "content": None}), "content"),
        (request({"role": "system", "content": [{"type": "image_url", "image_url": 1}]}), "image"),
        (request(USER, {**USER, "tool_calls": [call()]}), "only an assistant"),
        (request(USER, calling()), "at least one"),
        (request(USER, calling(call("a"), call("a")), answered("a")), "id of its own"),
        (request(USER, calling(call("")), answered("")), "id of its own"),
        (request(USER, calling(call(name="a b")), answered()), "a name and arguments"),
        (request(USER, calling(call() | {"type": "tool"}), answered()), "a name and arguments"),
        (request(USER, calling(call())), "not answered"),
        (request(USER, calling(call()), USER, answered()), "not answered"),
        (request(USER, calling(call("a"), call("b")), answered("a"), USER), "not answered"),
        (request(USER, calling(call()), answered(), answered()), "not open"),
        (request(USER, answered()), "not open"),
        (request(USER, calling(call()), {"role": "tool", "content": "x"}), "tool_call_id"),
        (request(tools=[]), "at least one"),
        (request(tools=[tool(), tool()]), "a name of its own"),
        (request(tools=[tool("a.b")]), "legal name"),
        (request(tools=[{"name": "view"}]), "legal name"),
        (request(tools=[tool()], tool_choice=tool("other")), "names no tool"),
        (request(tool_choice="auto"), "only allowed when tools"),
        (request(parallel_tool_calls=True), "only allowed when tools"),
        (request(stream_options={"include_usage": True}), "only allowed when stream"),
        (request(response_format={"type": "json_object"}), "the word json"),
    ],
)
def test_what_the_api_refuses_is_named(illegal: dict[str, Any], complaint: str) -> None:
    """Histories that a real provider answers with 400 must not pass a test unnoticed."""
    assert complaint in "; ".join(violations(illegal))
