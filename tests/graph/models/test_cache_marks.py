"""Marks behind which a provider keeps a request that begins alike (CX-07)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, OpenAIServer, openai_server
from tests.parts import settings

from daruma import build_graph
from daruma.graph.models._calls import mark_of, with_marks
from daruma.tools.model_requests import sendable

LOOK = [{"name": "look", "arguments": "{}"}]
CLAUDE, GPT = "anthropic:claude-sonnet-4-6", "openai:gpt-a"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that open nothing."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "a-key-of-nobody")


def look() -> str:
    """Look."""
    return "seen"


def asked(server: OpenAIServer, main: str, *fallback: str) -> Any:
    """Run a task, in which the model looks twice."""
    urls = {CLAUDE: server.url.removesuffix("/v1"), GPT: server.url}
    options: dict[str, Any] = {"main": {"base_url": urls[main]}}
    if fallback:
        options["fallback"] = {"base_url": urls[fallback[0]]}
    given = settings(
        llm={"options": options, "fallback_models": fallback, "requests": {"wait_seconds": 0}}
    )
    graph = build_graph(main, [look], given)
    return graph.invoke({"messages": [("user", "Look twice")], "mode": "react"})


def marked(body: dict[str, Any]) -> list[str]:
    """Return the text of each part of a request that has a mark."""
    return [
        str(part.get("text") or part.get("content"))
        for part in parts(body)
        if part.get("cache_control") == {"type": "ephemeral"}
    ]


def parts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a request's prompt and messages."""
    contents = [body.get("system", []), *(each["content"] for each in body["messages"])]
    yield from (part for each in contents if isinstance(each, list) for part in each)


TWICE = [Reply("", LOOK), Reply("", LOOK), Reply("Done.")]


def test_what_the_next_request_begins_with_is_marked() -> None:
    """CX-07: the prompt, the end of the request before and the end of this one."""
    with openai_server(TWICE) as server:
        out = asked(server, CLAUDE)

    first, second, third = map(marked, server.bodies)
    assert out["result"].completed
    assert [each[:18] for each in first] == ["You carry out a ta", "Look twice"]
    assert (second[1], "seen" in second[2]) == ("Look twice", True)
    assert len(second) == len(third) == 3
    assert second[2] == third[1]
    assert [len(marked(body)) <= 4 for body in server.bodies] == [True] * 3
    stored = json.dumps([each.model_dump() for each in out["messages"]], default=str)
    assert "cache_control" not in stored


def test_a_server_that_refuses_marks_is_asked_without_them() -> None:
    """CX-07: one that speaks the protocol, and not all of it."""

    def reply(_request: dict[str, Any]) -> Answer:
        refused = {"message": "cache_control: Extra inputs are not permitted"}
        unmarked = "cache_control" not in json.dumps(server.bodies[-1])
        return Reply("Done.") if unmarked else Fault(400, {"type": "error", "error": refused})

    with openai_server(reply) as server:
        out = asked(server, CLAUDE)

    assert out["result"].output == "Done."
    assert len(server.bodies) == 2


@pytest.mark.long
def test_what_was_kept_is_counted_and_has_its_price() -> None:
    """CX-07: tokens read from a provider's cache, and written to it, by role and in money."""
    million = 1_000_000
    with openai_server([Reply("Done.", usage=(million, 0), kept=(0, million))]) as server:
        wrote = asked(server, CLAUDE)["result"].usage["main"]
    with openai_server([Reply("Done.", usage=(million, 0), kept=(million, 0))]) as server:
        read = asked(server, CLAUDE)["result"].usage["main"]
    with openai_server([Reply("Done.", usage=(million, 0))]) as server:
        plain = asked(server, CLAUDE)["result"].usage["main"]

    assert (wrote["cache_write_tokens"], read["cached_tokens"]) == (million, million)
    assert "cached_tokens" not in plain
    assert read["usd"] < plain["usd"] < wrote["usd"]


# --- Bedrock's own interface, whose package is not installed here.


class ChatBedrockConverse:
    """Named as LangChain's class."""

    __module__ = "langchain_aws.chat_models.bedrock_converse"

    def __init__(self, model_id: str) -> None:
        self.model_id = model_id


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("eu.anthropic.claude-sonnet-4", "cachePoint"),
        ("amazon.nova-pro-v1:0", "cachePoint"),
        ("meta.llama3-1-8b", ""),
    ],
)
def test_bedrock_is_sent_points_by_models_that_keep(name: str, mark: str) -> None:
    """CX-07: others refuse them."""
    assert mark_of(ChatBedrockConverse(name)) == mark


def test_a_point_is_a_part_of_its_own() -> None:
    """CX-07: behind the text; nothing that is empty, and no answer, is marked."""
    call = {"name": "look", "args": {}, "id": "c"}
    said: list[AnyMessage] = [
        SystemMessage("Work."),
        HumanMessage([{"type": "text", "text": "Look"}, {"type": "image", "url": "x"}]),
        AIMessage("", tool_calls=[call]),
        ToolMessage("seen", tool_call_id="c"),
    ]
    sent = with_marks(sendable(said), "cachePoint")

    point = {"cachePoint": {"type": "default"}}
    assert sent[0].content == [{"type": "text", "text": "Work."}, point]
    assert sent[1].content == said[1].content
    assert sent[3].content == [{"type": "text", "text": "seen"}, point]
    assert said[3].content == "seen"
    assert with_marks(sendable([HumanMessage(" ")]), "cachePoint")[0].content == " "
