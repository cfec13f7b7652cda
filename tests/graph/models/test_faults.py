"""What each kind of failure of each kind of client means for the next request."""

import json
import socket
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models._client_utils import StreamChunkTimeoutError
from pydantic import SecretStr

from daruma.graph.models import (
    ModelUnavailable,
    ScriptedFault,
    fault_of,
    keys_of,
)
from daruma.graph.models._faults import (
    BrokenAnswer,
    Kind,
    ScriptInvalid,
)
from daruma.state.failure import TooLong

NOW = 1_000_000_000.0
CLIENT = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")


def of(status: int, headers: dict[str, str] | None = None, **body: Any) -> openai.APIStatusError:
    """OpenAI's exception for an error answer."""
    content = json.dumps({"error": {"message": "no"} | body})
    request = httpx.Request("POST", "http://127.0.0.1:9/v1")
    response: Any = httpx.Response(status, headers=headers, text=content, request=request)
    return CLIENT._make_status_error_from_response(response)


def broken_off(**body: Any) -> openai.APIError:
    """OpenAI's exception for an error in the midst of a stream."""
    request: Any = httpx.Request("POST", "http://127.0.0.1:9/v1")
    return openai.APIError(str(body.get("message", "no")), request, body=body)


class Odd(Exception):
    """An exception of another provider: what is known of it are its attributes."""

    def __init__(self, text: str = "odd", **attributes: Any) -> None:
        super().__init__(text)
        self.__dict__.update(attributes)


class ReadTimeout(Odd):
    """A provider's own name for it."""


class ClientError(Odd):
    """The root of what aiohttp raises for a lost connection."""


def wrapped(error: Exception) -> Odd:
    """A client's own exception around what happened."""
    outer = Odd("the model failed")
    outer.__cause__ = error
    return outer


REQUEST: Any = httpx.Request("POST", "http://127.0.0.1:9/v1")

TABLE: list[tuple[Exception, Kind]] = [
    (of(404), "next"),
    (of(400, message="tools are not supported by this model"), "next"),
    (of(400, code="unsupported", param="tool_choice"), "next"),
    (of(400, message="Invalid schema for function 'f'"), "next"),
    (of(422, message="functions is no known field"), "next"),
    (of(400, code="model_not_found"), "next"),
    (of(402, message="no balance"), "next"),
    (of(403, message="no access to model m"), "next"),
    (of(429, code="insufficient_quota"), "next"),
    (of(400, message="the context is too long"), "final"),
    (of(400, message="my toolkit is dysfunctional"), "final"),
    (of(413), "final"),
    (of(422), "final"),
    (of(405), "final"),
    (of(401), "final"),
    (of(403), "final"),
    *((of(status), "again") for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
    (openai.APITimeoutError(REQUEST), "again"),
    (openai.APIConnectionError(request=REQUEST), "again"),
    (StreamChunkTimeoutError(60.0), "again"),
    (broken_off(message="overloaded", type="server_error"), "again"),
    (broken_off(message="slow down", code=429), "again"),
    (broken_off(message="too long", type="invalid_request_error"), "final"),
    (broken_off(message="no balance", code="insufficient_quota"), "next"),
    (httpx.ConnectError("no"), "again"),
    (httpx.ReadTimeout("no"), "again"),
    (httpx.RemoteProtocolError("no"), "again"),
    (TimeoutError(), "again"),
    (ConnectionResetError(), "again"),
    (OSError(101, "Network is unreachable"), "again"),
    (FileNotFoundError(2, "No such file", "key.json"), "next"),
    (ReadTimeout(), "again"),
    (ClientError(), "again"),
    (ClientError(status=404), "next"),
    (json.JSONDecodeError("no", "{", 1), "again"),
    (BrokenAnswer("it broke off"), "again"),
    (Odd(status_code=529), "again"),
    (Odd(code=503), "again"),
    (Odd(code=HTTPStatus.NOT_FOUND), "next"),
    (Odd(code="429"), "again"),
    (Odd(code=lambda: 503), "next"),
    (Odd(response=SimpleNamespace(status_code=500)), "again"),
    (wrapped(Odd(code=503)), "again"),
    (wrapped(ConnectionResetError()), "again"),
    (wrapped(ValueError()), "next"),
    (ValueError("a bug"), "next"),
    (KeyError("a bug"), "next"),
    (ScriptedFault("down"), "next"),
    (ModelUnavailable("no key"), "next"),
    (ScriptInvalid("no script"), "next"),
]


@pytest.mark.parametrize(
    ("error", "kind"), TABLE, ids=lambda part: part if isinstance(part, str) else repr(part)[:60]
)
def test_a_failure_has_its_fate(error: Exception, kind: Kind) -> None:
    """TL-17: by what the exception tells of itself, whoever's it is."""
    assert fault_of(error).kind == kind


def test_only_what_a_run_can_not_mend_is_hopeless() -> None:
    """TL-17a: a provider that said no for good, and settings of which no model can be made."""
    faults = [fault_of(error) for error, _ in TABLE]

    said_no = {"auth", "quota"}
    assert {each.reason for each in faults if each.hopeless} == {*said_no, "unknown"}
    assert all(each.hopeless for each in faults if each.reason in said_no)
    hopeless = [error for error, _ in TABLE if fault_of(error).hopeless]
    assert [type(error) for error in hopeless if fault_of(error).reason == "unknown"] == [
        ModelUnavailable,
        ScriptInvalid,
    ]


def refused(url: str = "http://127.0.0.1:9/v1") -> Exception:
    """What OpenAI's client raises where nobody listens."""
    error = openai.APIConnectionError(request=cast("Any", httpx.Request("POST", url)))
    error.__cause__ = httpx.ConnectError("All connection attempts failed")
    error.__cause__.__context__ = OSError("All connection attempts failed")
    group = ExceptionGroup("several", [ConnectionRefusedError(111, "Connection refused")])
    error.__cause__.__context__.__cause__ = group
    return error


def unresolved() -> Exception:
    """The same where the name means nothing."""
    error = openai.APIConnectionError(
        request=cast("Any", httpx.Request("POST", "https://me:pw@no.where/v1"))
    )
    error.__cause__ = socket.gaierror(-2, "Name or service not known")
    return error


LINES = [
    (refused(), "no connection to 127.0.0.1:9: connection refused"),
    (unresolved(), "no connection to no.where: the name is not resolved"),
    (
        ConnectionResetError(104, "Connection reset by peer"),
        "no connection: connection reset by peer",
    ),
    (of(401, message="no such key"), "127.0.0.1:9 HTTP 401: the key is refused: no such key"),
    (
        of(429, {"Retry-After": "3600"}, message="slow down"),
        "127.0.0.1:9 HTTP 429: too many requests, asks for a wait of 3600 s: slow down",
    ),
    (
        of(429, code="insufficient_quota"),
        "127.0.0.1:9 HTTP 429: the quota or the credit is used up: no",
    ),
    (
        of(400, message="m does not support tools"),
        "127.0.0.1:9 HTTP 400: the model takes no tools: m does not support tools",
    ),
    (Odd("busy", status_code=529), "HTTP 529: the server failed: busy"),
    (ScriptedFault("down"), "down"),
    (ValueError("a bug"), "a bug"),
]


@pytest.mark.parametrize(("error", "line"), LINES, ids=lambda part: repr(part)[:40])
def test_a_failure_is_one_line_with_where_and_why(error: Exception, line: str) -> None:
    """TL-17a: the address, the reason, the provider's own words."""
    assert fault_of(error).message == line


def test_a_server_that_is_not_there_is_given_up_for_the_run() -> None:
    """A connection that was lost may come back."""
    assert [fault_of(each).hopeless for each in (refused(), unresolved())] == [True, True]
    assert not fault_of(openai.APIConnectionError(request=REQUEST)).hopeless


def test_the_body_counts_not_the_summary_of_the_client() -> None:
    """TL-17a: of bodies without an object `error` OpenAI's client tells the status alone."""
    text = json.dumps([{"error": {"code": 400, "message": "prompt is too long for the context"}}])
    client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")
    response: Any = httpx.Response(400, text=text, request=REQUEST)
    error = client._make_status_error_from_response(response)

    assert str(error) == "Error code: 400"
    assert fault_of(error).too_long == TooLong()


def test_what_a_client_knows_for_too_long_is_believed() -> None:
    """LangChain's clients have a class for it."""

    class ContextOverflowError(Exception):
        status_code = 400

    assert fault_of(ContextOverflowError("no")).too_long == TooLong()


def test_a_timeout_is_told_from_other_failures() -> None:
    """EM-02: by the type alone."""
    timeouts = [error for error, _ in TABLE if fault_of(error).code == "timeout"]

    assert [type(error).__name__ for error in timeouts] == [
        "APITimeoutError",
        "StreamChunkTimeoutError",
        "ReadTimeout",
        "TimeoutError",
        "ReadTimeout",
    ]


@pytest.mark.parametrize(
    "error",
    [
        of(429, {"Retry-After": "7"}),
        of(503, {"Retry-After": "Sun, 09 Sep 2001 01:46:47 GMT"}),
        Odd(response=SimpleNamespace(headers={"retry-after-ms": "7000"})),
        Odd(headers={"Retry-After": "7"}),
        wrapped(of(429, {"Retry-After": "7"})),
    ],
)
def test_the_wait_that_a_server_wants_is_found(error: Exception) -> None:
    """TL-17: wherever a client keeps the headers of the answer."""
    assert fault_of(error, now=NOW).retry_after == 7


# --- A chat model's own secrets are known, wherever it keeps them.


def test_a_models_own_secrets_are_found() -> None:
    """Also when no variable of the environment holds them."""
    model = ChatOpenAI(model="m", api_key=SecretStr("given-by-hand"))

    assert (keys_of(model), keys_of(object())) == (["given-by-hand"], [])


def test_secrets_in_headers_are_found() -> None:
    """What a gateway takes in place of a key; other headers are ordinary words."""
    headers = {"X-Gateway-Token": "of-the-gateway", "Authorization": "Bearer of-me", "X-Team": "us"}
    model = ChatOpenAI(model="m", api_key=SecretStr("given-by-hand"), default_headers=headers)

    assert keys_of(model) == ["given-by-hand", "of-the-gateway", "of-me"]
