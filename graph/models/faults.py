"""What a provider's exception means for the next request. Pure.

By attributes, as every provider has classes of its own; the first line that fits counts:

    no model can be made, a circuit is open           next (for good, if no model can be made)
    a request that is too long                        final: it is made smaller by whoever made it
    `model_not_found`, 402, 404, used-up quota        next
    401                                               final, for good
    403                                               next if it speaks of the model, else as 401
    408, 409, 425, 429, 5xx                           again
    400, 422 that speak of tools, functions, schema   next
    any other status from 300                         final
    timeouts, lost connections, answers that can
    not be read, errors in the midst of a stream      again
    anything else                                     next: a bug is asked once of each model
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, Literal, TypeGuard

from daruma.graph.models.context_overflow import too_long
from daruma.graph.models.errors import BrokenAnswer, CircuitOpen, ModelUnavailable
from daruma.graph.models.retry_after import retry_after
from daruma.state.failure import TooLong

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
