"""What can go wrong with a chat model, and what that means for the next request."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from json import JSONDecodeError
from socket import gaierror
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from daruma.graph.models._provider_errors import (
    MAX_MESSAGE,
    ProviderFailure,
    read_failure,
    retry_after,
)
from daruma.state.errors import DarumaError
from daruma.state.failure import Reason, TooLong
from daruma.state.text import printable_line
from daruma.tools.text import without_keys

# --- What can go wrong between the machine and a chat model, as one small tree.
#
#     ModelError
#     ├── ModelUnavailable     no model can be made from the configuration
#     │   ├── ToolsUnavailable  tools can not be offered to the model
#     │   └── ScriptInvalid    what was given as a script is not one
#     ├── BrokenAnswer         an answer that can not be read, or that was broken off
#     └── ScriptedFault        a script's `raise`: stands for any failure of a model
#     AssertionError
#     └── ScriptError          the machine and the script disagree: a bug in one of them
#         ├── ScriptMismatch   the request lacks what the turn expects
#         └── ScriptExhausted  the script has no turn left for this role
#
# A `ScriptError` is deliberately no `ModelError`: a machine that recovers from failing models must
# not recover from a broken test.


class ModelError(DarumaError):
    """Raised when a chat model cannot be made or does not answer."""


class ModelUnavailable(ModelError):
    """Raised when the configuration names no usable model; the message is one line."""


class ToolsUnavailable(ModelUnavailable):
    """Raised when tools can not be offered to a model; without any it can be asked."""


class ScriptInvalid(ModelUnavailable):
    """Raised when a script cannot be read; the message is one line that says where."""


class BrokenAnswer(ModelError):
    """Raised when what came back is no whole answer."""


class ScriptedFault(ModelError):
    """Raised by a scripted model where its script says `raise`.

    ``status_code`` is the HTTP status it stands for, under the name that OpenAI's client has.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status_code = status


class ScriptError(AssertionError):
    """Raised when a scripted model is asked something its script does not hold."""


class ScriptMismatch(ScriptError):
    """Raised when a request lacks a text or a tool that the turn expects."""


class ScriptExhausted(ScriptError):
    """Raised when a role is asked once more than its script has turns."""


# --- What a provider's exception means for the next request. Pure.
#
# By attributes, as every provider has classes of its own; by what the provider said:
#
#     no model can be made                              next, for good
#     too_large                                         final: whoever made it makes it smaller
#     quota                                             next, for good
#     not_found, tools_unsupported                      next: a server may be about to be mended
#     auth                                              final, for good
#     rate_limited, server, timeout, connection         again
#     bad_request of 400, 422 that speaks of tools      next
#     any other bad_request                             final
#     anything else                                     next: a bug is asked once of each model
#
# "For good" is for as long as a run lasts; so long is a server gone that can not be reached, once
# the requests to it are used up.

Kind = Literal["again", "mend", "next", "final"]

_FATES: Final[Mapping[Reason, tuple[Kind, bool, str]]] = {
    "too_large": ("final", False, "the request is too large"),
    "quota": ("next", True, "the quota or the credit is used up"),
    "not_found": ("next", False, "no such model or address"),
    "tools_unsupported": ("next", False, "the model takes no tools"),
    "auth": ("final", True, "the key is refused"),
    "rate_limited": ("again", False, "too many requests"),
    "server": ("again", False, "the server failed"),
    "timeout": ("again", False, ""),
    "connection": ("again", False, ""),
    "bad_request": ("final", False, "the request is refused"),
    "unknown": ("next", False, ""),
}
"""What is done about each, whether it is so for good, and what it is called."""
_LOST = frozenset({"TransportError", "APIConnectionError", "ClientError", "APIError"})
"""What httpx, the clients made of one mould (OpenAI, Anthropic), and aiohttp call it."""

_OTHER_LOOP: Final = (
    "the model's HTTP client belongs to another event loop: give it one that serves all,"
    " http_async_client=daruma.ClientPerLoop()"
)
_ASKED: Final = "/chat/completions"
_NOT_THERE: Final = frozenset({None, 404, 405})
_NO_VERSION: Final = "; does its address lack /v1?"


@dataclass(frozen=True)
class Fault:
    """A request that brought no answer, and what can be done: ask again, the next model, nothing.

    A kind of its own, "mend", is asking again at once with a request that was mended.
    `retry_after` is in seconds. `hopeless` says that the same would be refused for as long as a run
    lasts; `cause` names the exception, `address` the server's host and port.
    """

    kind: Kind
    message: str
    cause: str = ""
    code: Literal["timeout", "llm_failure"] = "llm_failure"
    status: int | None = None
    retry_after: float | None = None
    hopeless: bool = False
    too_long: TooLong | None = None
    reason: Reason = "unknown"


def fault_of(error: Exception, *, now: float | None = None) -> Fault:
    """Say what an exception means. `now` is the time for a `Retry-After` that is a date."""
    status = next(filter(None, map(_status, _causes(error))), None)
    failure = _failure_of(error, status, time.time() if now is None else now)
    kind, hopeless = _fate(error, status, failure)
    overflow = TooLong(failure.limit or 0, failure.sent or 0)
    return Fault(
        kind=kind,
        message=_line_of(error, status, failure),
        cause=type(error).__name__,
        code="timeout" if _is_timeout(error) else "llm_failure",
        status=status,
        retry_after=failure.wait,
        hopeless=hopeless,
        too_long=overflow if failure.reason == "too_large" else None,
        reason=failure.reason,
    )


def _fate(error: Exception, status: int | None, failure: ProviderFailure) -> tuple[Kind, bool]:
    if isinstance(error, ModelUnavailable):
        return "next", True
    if failure.reason == "bad_request" and status in {400, 422} and failure.of_tools:
        return "next", False
    kind, hopeless, _ = _FATES[failure.reason]
    refused = (isinstance(each, ConnectionRefusedError | gaierror) for each in _origins(error))
    return kind, hopeless or any(refused)


def _failure_of(error: Exception, status: int | None, now: float) -> ProviderFailure:
    body = next(filter(None, map(_body, _causes(error))), None)
    headers = next(filter(None, map(_headers, _causes(error))), {})
    if isinstance(error, (BrokenAnswer, JSONDecodeError)) or (status or 300) < 300:
        return ProviderFailure("server", _one_line(error))
    if isinstance(error, ToolsUnavailable):
        return ProviderFailure("tools_unsupported", _one_line(error))
    if isinstance(error, RecursionError):  # of a client that reads answers
        return ProviderFailure("server", "the answer is nested too deeply to be read")
    if status is None and body is None and not _is_overflow(error):
        # It never came to an answer of the provider.
        reason: Reason = "connection" if _is_lost(error) else "unknown"
        reason = "timeout" if _is_timeout(error) else reason
        return ProviderFailure(reason, _one_line(error), wait=retry_after(headers, now=now))
    failure = read_failure(status, headers, _attributes(error) if body is None else body, now=now)
    if _is_overflow(error) and failure.reason != "too_large":
        return replace(failure, reason="too_large")
    return failure


def _one_line(error: Exception) -> str:
    return printable_line(without_keys(str(error)), MAX_MESSAGE) or type(error).__name__


def _line_of(error: Exception, status: int | None, failure: ProviderFailure) -> str:
    """Say in one line what happened: where, why, and the provider's own words."""
    url = next(filter(None, map(_url, _causes(error))), "")
    address = urlsplit(url).netloc.rpartition("@")[2]
    if any(isinstance(e, RuntimeError) and "event loop" in str(e).lower() for e in _origins(error)):
        return f"{_OTHER_LOOP} ({failure.words})"
    if failure.reason == "connection":
        why = next(filter(None, map(_why_lost, _origins(error))), failure.words)
        return f"no connection to {address}: {why}" if address else f"no connection: {why}"
    if failure.reason == "unknown" or isinstance(error, BrokenAnswer):
        return failure.words
    title = _FATES[failure.reason][2]
    if failure.wait is not None and failure.reason in {"rate_limited", "server"}:
        title = f"{title}, asks for a wait of {failure.wait:g} s"
    number = f"HTTP {status}" if status else ""
    where = " ".join(filter(None, (address, number)))
    said = ": ".join(filter(None, (where, title, failure.words)))
    return said + (_address_hint(url, failure.words) if status in _NOT_THERE else "")


def _address_hint(url: str, words: str) -> str:
    """Say what is probably wrong with an address of OpenAI's protocol that a server does not know.

    Some answer with status 200 there: the error is then one of the address that was set.
    """
    path = urlsplit(url).path.rstrip("/")
    base = path.removesuffix(_ASKED)
    if base.endswith(_ASKED):
        return f"; the address that is set has to end before {_ASKED}"
    of_openai = base != path or "unexpected endpoint" in words.lower()
    return _NO_VERSION if of_openai and not re.search(r"/v\d|/deployments/", base) else ""


# --- What is read off exceptions, by attributes that the clients of many providers have. Pure.


def _is_lost(error: Exception) -> bool:
    return any(
        # An error that names a file is about this machine, not about the network.
        (isinstance(each, OSError) and each.filename is None) or not _LOST.isdisjoint(_names(each))
        for each in _causes(error)
    )


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or any("Timeout" in name for name in _names(error))


def _is_overflow(error: BaseException) -> bool:
    """Whether LangChain's client of the provider knows it for one."""
    return "ContextOverflowError" in _names(error)


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and the one that it was made of: some clients wrap what happened."""
    yield error
    if error.__cause__ is not None:
        yield error.__cause__


def _origins(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and all that it came of, each once."""
    left, seen = [error], set[int]()
    while left:
        each = left.pop(0)
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            left += [one for one in (each.__cause__, each.__context__) if one]
            left += each.exceptions if isinstance(each, BaseExceptionGroup) else ()


def _why_lost(error: BaseException) -> str:
    """Say why there is no connection, empty where the error does not tell."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, gaierror):
        return "the name is not resolved"
    told = isinstance(error, OSError) and error.filename is None and error.strerror
    return printable_line(told).lower() if isinstance(told, str) else ""


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    places = ((error, "status_code"), (response, "status_code"), (error, "status"), (error, "code"))
    for owner, name in places:
        value: Any = getattr(owner, name, None)
        digits = isinstance(value, str) and value.isascii() and value.isdigit()
        number = int(value) if isinstance(value, int) or digits else 0
        if 100 <= number < 600:
            return number
    # In the midst of a stream there is no status, but the type tells as much.
    return 400 if getattr(error, "type", None) == "invalid_request_error" else None


def _body(error: BaseException) -> object | None:
    """Return what the provider sent, whole where the response is at hand; None if nothing is."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        return response
    with suppress(Exception):  # of a stream that was never read
        if isinstance(response.text, str) and response.text.strip():
            return response.text
    bodies = (getattr(error, "body", None), getattr(error, "details", None))
    return next((each for each in bodies if each and isinstance(each, Mapping | list | str)), None)


def _attributes(error: BaseException) -> Mapping[str, object]:
    """Return what the client says of an answer that it did not keep."""
    named = {name: getattr(error, name, None) for name in ("code", "param", "type")}
    return {"message": str(error)} | {k: v for k, v in named.items() if isinstance(v, str)}


def _headers(error: BaseException) -> Mapping[str, str] | None:
    for owner in (getattr(error, "response", None), error):
        headers: Any = getattr(owner, "headers", None)
        if isinstance(headers, Mapping):
            return headers
    return None


def _url(error: BaseException) -> str:
    """Return the address that was asked, empty where the error does not tell."""
    with suppress(Exception):  # a request that is not set
        return str(error.request.url)  # type: ignore[attr-defined]
    return ""


# --- The secrets that a chat model was made with: servers quote the key that they refuse.

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


def keys_of(model: object) -> list[str]:
    """Return the secrets that a chat model was made with."""
    secrets = getattr(model, "__dict__", {}).values()
    found = [each.get_secret_value() for each in secrets if isinstance(each, SecretStr)]
    headers = getattr(model, "default_headers", None)
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if isinstance(value, str) and _SECRET_HEADER.search(str(name)):
            found.append(value.rpartition(" ")[2])  # what stands before it is the scheme
    return found
