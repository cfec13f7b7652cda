"""The server that tests talk to is as strict as the real one, and fails exactly as asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from tests.openai_answers import Reply
from tests.openai_server import Fault, OpenAIServer, openai_server


@contextmanager
def client_of(server: OpenAIServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client


def ask(client: openai.OpenAI, *, role: Any = "user", **options: Any) -> Any:
    messages: Any = [{"role": role, "content": "hi"}]
    return client.chat.completions.create(model="m", messages=messages, **options)


def test_an_illegal_request_is_refused_and_fails_the_test() -> None:
    """A client that swallows the 400 does not hide it: leaving the block raises."""
    with (
        pytest.raises(AssertionError, match="unknown role 'critic'"),
        openai_server([]) as server,
        client_of(server) as client,
        pytest.raises(openai.BadRequestError, match="unknown role 'critic'"),
    ):
        ask(client, role="critic")


def test_a_lenient_server_only_notes_violations() -> None:
    """Tests of illegal requests read the notes and pass."""
    with openai_server([], strict=False) as server, client_of(server) as client:
        with pytest.raises(openai.NotFoundError):
            client.models.list()
        with pytest.raises(openai.AuthenticationError):
            ask(client, extra_headers={"Authorization": "none"})

    assert server.violations == ["there is nothing at /v1/models", "no API key was given"]


def test_a_request_too_many_fails_the_test() -> None:
    """A list of replies says how often the model is asked; 400 keeps clients from trying again."""
    with (
        pytest.raises(AssertionError, match="asked 1 times, with 0 replies"),
        openai_server([]) as server,
        client_of(server) as client,
        pytest.raises(openai.BadRequestError, match="reply failed"),
    ):
        ask(client)


def test_an_answer_arrives_whole() -> None:
    """Text, calls, usage and the finish reason reach a real client; the request is on record."""
    reply = Reply("ok", calls=[{"name": "view", "arguments": {"p": 1}}], usage=(7, 3))

    with openai_server([reply]) as server, client_of(server) as client:
        answer = ask(client)

    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("ok", "tool_calls")
    assert choice.message.tool_calls[0].function.arguments == '{"p": 1}'
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 3)
    assert server.requests == [{"model": "m", "messages": [{"role": "user", "content": "hi"}]}]


def test_a_streamed_answer_adds_up_to_the_plain_one() -> None:
    """Pieces of text and of arguments join to what was replied, with usage at the end."""
    reply = Reply("hello", calls=[{"id": "x", "name": "view", "arguments": '{"p": 1}'}])

    with openai_server([reply, reply]) as server, client_of(server) as client:
        plain = ask(client)
        with ask(client, stream=True, stream_options={"include_usage": True}) as stream:
            chunks = list(stream)

    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    calls = [part for choice in choices for part in choice.delta.tool_calls or ()]
    assert "".join(choice.delta.content or "" for choice in choices) == "hello"
    assert "".join(part.function.arguments for part in calls) == '{"p": 1}'
    assert (calls[0].id, calls[0].function.name) == ("x", "view")
    assert [choice.finish_reason for choice in choices][-2:] == [None, "tool_calls"]
    assert chunks[-1].usage == plain.usage


def test_a_function_of_the_request_may_answer() -> None:
    """What is answered can depend on what was asked; connections are kept alive in between."""
    with openai_server(lambda asked: Reply(asked["model"])) as server, client_of(server) as client:
        answers = [ask(client).choices[0].message.content for _ in range(3)]

    assert (answers, server.connections) == (["m", "m", "m"], 1)


def test_an_error_answer_has_its_status_body_and_headers() -> None:
    """Retry-After and a provider's own error text reach the client."""
    fault = Fault(429, {"error": {"message": "slow down"}}, {"Retry-After": "7"})

    with (
        openai_server([fault]) as server,
        client_of(server) as client,
        pytest.raises(openai.RateLimitError, match="slow down") as caught,
    ):
        ask(client)

    assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize("cut", ["before_first_token", "later", "unfinished"])
def test_a_cut_answer_is_a_lost_connection(cut: Any) -> None:
    """An answer that breaks off is no answer to the client, and no violation to the server."""
    with (
        openai_server([Fault(cut=cut)]) as server,
        client_of(server) as client,
        pytest.raises(openai.APIConnectionError),
    ):
        ask(client)


@pytest.mark.parametrize(("cut", "received"), [("before_first_token", 0), ("later", 2)])
def test_a_cut_stream_breaks_where_it_is_told(cut: Any, received: int) -> None:
    """Failover depends on whether a first token was seen, so both must be producible."""
    with (
        openai_server([Fault(cut=cut)]) as server,
        client_of(server) as client,
        ask(client, stream=True) as stream,
    ):
        for _ in range(received):
            next(stream)
        with pytest.raises(openai.APIConnectionError):
            next(stream)


def test_an_unfinished_stream_ends_politely_without_a_finish_reason() -> None:
    """Clients take it for a success, so ours must be tested with it."""
    with (
        openai_server([Fault(cut="unfinished")]) as server,
        client_of(server) as client,
        ask(client, stream=True) as stream,
    ):
        chunks = list(stream)

    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None]


@pytest.mark.parametrize("stream", [False, True])
def test_a_malformed_answer_is_not_json(stream: bool) -> None:
    """With status 200, so that nothing but reading it can tell."""
    with (
        openai_server([Fault(malformed=True)]) as server,
        client_of(server) as client,
        pytest.raises(json.JSONDecodeError),
    ):
        list(ask(client, stream=stream))


@pytest.mark.parametrize("cut", [None, "later"])
def test_a_hanging_answer_waits_for_its_event(cut: Any) -> None:
    """The client's own patience ends the call; the event, not a timer, ends the hang."""
    hang = threading.Event()

    with openai_server([Fault(cut=cut, hang=hang)]) as server, client_of(server) as client:
        with pytest.raises(openai.APITimeoutError):
            ask(client, timeout=0.05)
        assert not hang.is_set()


def test_the_end_of_the_block_ends_a_hang_and_kept_connections() -> None:
    """A test that forgets its event, or its client, still ends, and leaves no thread behind."""
    hang = threading.Event()

    with openai_server([Fault(hang=hang), Reply()]) as server:
        with client_of(server) as client, pytest.raises(openai.APITimeoutError):
            ask(client, timeout=0.05)
        idle = openai.OpenAI(base_url=server.url, api_key="k")
        ask(idle)
    idle.close()

    assert hang.is_set()
