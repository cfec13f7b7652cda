"""What can go wrong with a chat model, and what that means for the next request."""

import math
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any, Final, Literal, TypeGuard

from pydantic import SecretStr

from daruma.state.errors import DarumaError
from daruma.state.failure import TooLong

# --- What can go wrong between the machine and a chat model, as one small tree.
#
#     ModelError
#     ├── ModelUnavailable     no model can be made from the configuration
#     │   └── ScriptInvalid    what was given as a script is not one
#     ├── BrokenAnswer         an answer that can not be read, or that was broken off
#     ├── CircuitOpen          a model that is not asked, as it failed just now
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


class ScriptInvalid(ModelUnavailable):
    """Raised when a script cannot be read; the message is one line that says where."""


class BrokenAnswer(ModelError):
    """Raised when what came back is no whole answer."""


class CircuitOpen(ModelError):
    """Raised instead of asking a model that keeps failing, where another one can be asked."""


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


# --- Telling from a provider's words that a request was more than its model can read. Pure.
#
# OpenAI has the code `context_length_exceeded`; who speaks its protocol (vLLM, llama.cpp, Ollama,
# proxies before other providers) says it in words alone.

_STATUSES: Final = frozenset({400, 413, 422})
_SAYS_SO: Final = re.compile(
    r"context_length_exceeded|context[ _]?(length|window|size)|maximum context|prompt is too long"
    r"|input is too long|too many (input )?tokens|input token count|maximum prompt length"
    r"|reduce the length of the (messages|prompt|input)"
    r"|exceeds? the (model's )?max\w* .{0,30}tokens",
    re.IGNORECASE,
)
_NUMBER: Final = r"([0-9][0-9,_]{2,})"
_MOST: Final = (
    rf"(?:maximum|max)\D{{0,40}}(?:length|window|size|tokens|of|is|=|:)\D{{0,20}}{_NUMBER}",
    rf"{_NUMBER} (?:tokens )?(?:maximum|max\b)",
    rf"(?:window|context|limit)\D{{0,30}}{_NUMBER}",
)
_SENT: Final = (
    rf"(?:resulted in|requested|contains?(?: at least)?|count \(|too long:)\D{{0,20}}{_NUMBER}",
)


def too_long(words: str, status: int | None) -> TooLong | None:
    """Return what a refusal says of the length of a request, None if it is about something else."""
    if status not in _STATUSES or not _SAYS_SO.search(words):
        return None
    most, sent = _first(_MOST, words), _first(_SENT, words)
    return TooLong(most, sent if sent > most else 0)


def _first(patterns: tuple[str, ...], words: str) -> int:
    found = (re.search(pattern, words, re.IGNORECASE) for pattern in patterns)
    return next((int(re.sub(r"[,_]", "", each[1])) for each in found if each), 0)


# --- When a server wants to be asked again, as its headers say it.


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds to wait: `Retry-After-Ms`, else `Retry-After` in seconds or as a date.

    `now` is the time as `time.time` tells it. None where there is nothing that can be read.
    """
    given = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    milliseconds = _number(given.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = given.get("retry-after", "")
    seconds = _number(said)
    return _until(said, now) if seconds is None else seconds


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None


def _until(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(aware.timestamp() - now, 0.0)


# --- What a provider's exception means for the next request. Pure.
#
# By attributes, as every provider has classes of its own; the first line that fits counts:
#
#     no model can be made, a circuit is open           next (for good, if no model can be made)
#     a request that is too long                        final: it is made smaller by whoever made it
#     `model_not_found`, 402, 404, used-up quota        next
#     401                                               final, for good
#     403                                               next if it speaks of the model, else as 401
#     408, 409, 425, 429, 5xx                           again
#     400, 422 that speak of tools, functions, schema   next
#     any other status from 300                         final
#     timeouts, lost connections, answers that can
#     not be read, errors in the midst of a stream      again
#     anything else                                     next: a bug is asked once of each model

Kind = Literal["again", "mend", "next", "final"]

_AGAIN = frozenset({408, 409, 425, 429})
_SPENT = frozenset({402, 404})
_TOOLS = re.compile(r"(?<![a-z])(tool|function|schema)s?(?![a-z])", re.IGNORECASE)
_MODEL = re.compile(r"(?<![a-z])models?(?![a-z])", re.IGNORECASE)
_LOST = frozenset({"TransportError", "APIConnectionError", "ClientError", "APIError"})
"""What httpx, the clients made of one mould (OpenAI, Anthropic), and aiohttp call it."""


@dataclass(frozen=True)
class Fault:
    """A request that brought no answer, and what can be done: ask again, the next model, nothing.

    A kind of its own, "mend", is asking again at once with a request that was mended.
    `retry_after` is in seconds. `hopeless` says that the same would be refused at any later time;
    `cause` names the exception.
    """

    kind: Kind
    message: str
    cause: str = ""
    code: Literal["timeout", "llm_failure"] = "llm_failure"
    status: int | None = None
    retry_after: float | None = None
    hopeless: bool = False
    too_long: TooLong | None = None


def fault_of(error: Exception, *, now: float | None = None) -> Fault:
    """Say what an exception means. `now` is the time for a `Retry-After` that is a date."""
    status = next((found for each in _causes(error) if (found := _status(each))), None)
    kind, hopeless = _fate(error, status)
    overflow = too_long(_words(error), status)
    kind = "final" if overflow else kind  # no model is asked with it: it is made smaller first
    return Fault(
        kind=kind,
        message=" ".join(str(error).split()) or type(error).__name__,
        cause=type(error).__name__,
        code="timeout" if _is_timeout(error) else "llm_failure",
        status=status,
        retry_after=_retry_after(error, time.time() if now is None else now),
        hopeless=hopeless,
        too_long=overflow,
    )


def _fate(error: Exception, status: int | None) -> tuple[Kind, bool]:
    if isinstance(error, ModelUnavailable):
        return "next", True
    if isinstance(error, CircuitOpen):
        return "next", False
    words = _words(error)
    if status in _SPENT or "model_not_found" in words or "insufficient_quota" in words:
        return "next", False
    if status is not None and status >= 300:
        return _of_status(status, words)
    return ("again" if status or _is_passing(error) else "next"), False


def _of_status(status: int, words: str) -> tuple[Kind, bool]:
    if status in _AGAIN or status >= 500:
        return "again", False
    if status == 403 and _MODEL.search(words):
        return "next", False
    if status in {401, 403}:
        return "final", True
    speaks_of_tools = status in {400, 422} and _TOOLS.search(words)
    return ("next" if speaks_of_tools else "final"), False


def _is_passing(error: Exception) -> bool:
    if isinstance(error, (BrokenAnswer, JSONDecodeError)) or _is_timeout(error):
        return True
    return any(
        # An error that names a file is about this machine, not about the network.
        (isinstance(each, OSError) and each.filename is None) or not _LOST.isdisjoint(_names(each))
        for each in _causes(error)
    )


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or any("Timeout" in name for name in _names(error))


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and the one that it was made of: some clients wrap what happened."""
    yield error
    if error.__cause__ is not None:
        yield error.__cause__


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    places = ((error, "status_code"), (response, "status_code"), (error, "status"), (error, "code"))
    for owner, name in places:
        value = getattr(owner, name, None)
        number = int(value) if isinstance(value, int) or _is_number(value) else 0
        if 100 <= number < 600:
            return number
    # In the midst of a stream there is no status, but the type tells as much.
    return 400 if getattr(error, "type", None) == "invalid_request_error" else None


def _is_number(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and value.isascii() and value.isdigit()


def _words(error: BaseException) -> str:
    named = (getattr(error, name, None) for name in ("code", "param", "message"))
    return " ".join([*(word for word in named if isinstance(word, str)), str(error)])


def _retry_after(error: BaseException, now: float) -> float | None:
    for each in _causes(error):
        for owner in (getattr(each, "response", None), each):
            headers: Any = getattr(owner, "headers", None)
            if isinstance(headers, Mapping) and (wait := retry_after(headers, now=now)) is not None:
                return wait
    return None


# --- Models that keep failing are left alone for a while, by all calls of this process.

FAILURES = 3
"""In a row: what one call at most asks of a model."""
OPEN_SECONDS = 30.0


@dataclass
class _Circuit:
    failures: int = 0
    opened_at: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES


class Circuits:
    """The circuits of models, by key; thread-safe. A key that is None has none.

    After `FAILURES` failures in a row a circuit is open for `OPEN_SECONDS`. Then one request is let
    through as a trial: an answer closes it, else it stays open for as long again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._circuits: dict[str, _Circuit] = {}
        self._objects: set[str] = set()

    def key_of(self, model: object) -> str:
        """Return the key of a model by its identity; it is forgotten together with the object."""
        key = f"{type(model).__name__} at {id(model)}"
        with self._lock:
            if key not in self._objects:
                self._objects.add(key)
                weakref.finalize(model, self.forget, key).atexit = False
        return key

    def allows(self, key: str | None) -> bool:
        """Say whether the model should be asked; whoever is told so while it is open is a trial."""
        with self._lock:
            circuit = self._circuits.get(key or "")
            if circuit is None or not circuit.is_open:
                return True
            if self._clock() - circuit.opened_at < OPEN_SECONDS:
                return False
            # For the others it opens anew, so that a trial that is cancelled leaves nothing behind.
            circuit.opened_at = self._clock()
            return True

    def is_open(self, key: str | None) -> bool:
        """Say whether the last requests to the model failed, trials included."""
        with self._lock:
            circuit = self._circuits.get(key or "")
            return circuit is not None and circuit.is_open

    def count(self, key: str | None, fault: Fault) -> None:
        """Count a failure that another request might not meet; a refusal is an answer too."""
        if fault.kind != "again":
            if fault.status is not None:
                self.answered(key)
        elif key is not None:
            with self._lock:
                circuit = self._circuits.setdefault(key, _Circuit())
                circuit.failures += 1
                circuit.opened_at = self._clock()

    def answered(self, key: str | None) -> None:
        """Close the circuit."""
        with self._lock:
            self._circuits.pop(key or "", None)

    def forget(self, key: str) -> None:
        """Forget a model that is gone."""
        with self._lock:
            self._objects.discard(key)
            self._circuits.pop(key, None)

    def close_all(self) -> None:
        """Forget every failure."""
        with self._lock:
            self._circuits.clear()


CIRCUITS = Circuits()
"""Those of this process."""


# --- The secrets that a chat model was made with: servers quote the key that they refuse.

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


def keys_of(model: object) -> list[str]:
    """Return the secrets that a chat model was made with."""
    secrets = getattr(model, "__dict__", {}).values()
    found = [each.get_secret_value() for each in secrets if isinstance(each, SecretStr)]
    return [*found, *_of_headers(getattr(model, "default_headers", None))]


def _of_headers(headers: object) -> Iterator[str]:
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if isinstance(value, str) and _SECRET_HEADER.search(str(name)):
            yield value.rpartition(" ")[2]  # what stands before it is the scheme
