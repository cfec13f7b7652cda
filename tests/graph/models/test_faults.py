"""What each kind of failure of each kind of client means for the next request."""

import json
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from langchain_openai.chat_models._client_utils import StreamChunkTimeoutError

from daruma.graph.models.faults import (
    BrokenAnswer,
    CircuitOpen,
    Kind,
    ModelUnavailable,
    ScriptedFault,
    ScriptInvalid,
    fault_of,
)

NOW = 1_000_000_000.0


def of(status: int, headers: dict[str, str] | None = None, **body: Any) -> openai.APIStatusError:
    """OpenAI's exception for an error answer."""
    client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")
    content = json.dumps({"error": {"message": "no"} | body})
    request = httpx.Request("POST", "http://127.0.0.1:9/v1")
    response: Any = httpx.Response(status, headers=headers, text=content, request=request)
    return client._make_status_error_from_response(response)


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
    (CircuitOpen("just failed"), "next"),
    (ModelUnavailable("no key"), "next"),
    (ScriptInvalid("no script"), "next"),
]


@pytest.mark.parametrize(
    ("error", "kind"), TABLE, ids=lambda part: part if isinstance(part, str) else repr(part)[:60]
)
def test_a_failure_has_its_fate(error: Exception, kind: Kind) -> None:
    """TL-17: by what the exception tells of itself, whoever's it is."""
    assert fault_of(error).kind == kind


def test_only_what_no_time_can_mend_is_hopeless() -> None:
    """A key that is refused, and settings of which no model can be made."""
    hopeless = [error for error, _ in TABLE if fault_of(error).hopeless]

    assert [getattr(error, "status_code", type(error)) for error in hopeless] == [
        401,
        403,
        ModelUnavailable,
        ScriptInvalid,
    ]


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


def test_a_fault_tells_what_was_said_in_one_line() -> None:
    """And names the exception; one without words is named only."""
    told = fault_of(of(500, message="on\n fire"))
    silent = fault_of(TimeoutError())

    assert (told.status, told.cause) == (500, "InternalServerError")
    assert "\n" not in told.message
    assert "fire" in told.message
    assert (silent.message, silent.status, silent.retry_after) == ("TimeoutError", None, None)
