"""What can go wrong with a chat model, and what that means for the next request; what a provider
said in place of an answer, whatever its shape: one reading for all (TL-17a).
"""

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from html import unescape
from http import HTTPStatus
from json import JSONDecodeError
from socket import gaierror
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from daruma.state.errors import DarumaError
from daruma.state.failure import Reason, TooLong
from daruma.state.text import printable_line
from daruma.tools.text import without_keys

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
    if math.isinf(number) and text.isdigit():  # so many digits
        return _FOR_EVER
    return max(number, 0.0) if math.isfinite(number) else None


def _until(text: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(aware.timestamp() - now, 0.0)


_FOR_EVER: Final = 1e9
"""Seconds: what a wait is told as that is longer than any number of them that is kept."""
_WAIT: Final = re.compile(
    r"(?:try again|retry|retrydelay|wait)\D{0,20}?((?:\d+(?:\.\d+)? ?(?:ms|milli|[smhd])[a-z]* ?)+)"
)
"""Where words in lower case name the time to wait, as in `try again in 1m7.5s`."""
_SECONDS_IN: Final = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


# --- The texts of an error's body, whatever its shape. Pure.
#
# An object `error`, a string `error`, a list of such (Gemini), `detail` (FastAPI), `message`, a
# page of HTML (proxies), plain text. The client's summary often lacks what it says, so the body
# itself is read: the words for people, and beside them the names (codes, types).

_LONGEST_READ: Final = 8000
"""Characters of a body that are looked at."""
_DEEPEST: Final = 8
_WORDS: Final = (
    *("error", "errors", "message", "msg", "detail", "details", "error_message", "error_msg"),
    *("error_description", "title", "metadata", "raw", "base_resp", "status_msg"),
)
"""Where bodies have what they say, in the order of reading; other fields may quote the request."""
_NAMES: Final = (
    *("code", "type", "__type", "status", "param", "reason", "error_code", "error_type"),
    *("violations", "quotaid", "retrydelay", "n_ctx", "n_prompt_tokens"),
)
_MARKUP: Final = re.compile(r"(?is)<(script|style|head)\b.{0,4000}?</\1\s*>|<[^<>]*>")
_TITLE: Final = re.compile(r"(?is)<title[^<>]*>(.{0,400}?)</title>")
"""Bounded: what a server sends is read in linear time (SE-07)."""


def _texts_of(body: object, key: str = "error", depth: int = 0) -> Iterator[tuple[bool, str]]:
    """Yield the texts of a body, each with whether it is a name, and nothing for people."""
    if isinstance(body, Mapping) and depth < _DEEPEST:
        fields = {str(name).lower(): each for name, each in body.items()}
        known = [name for name in (*_WORDS, *_NAMES) if fields.get(name) is not None]
        if not known and depth == 0:
            yield False, json.dumps(fields, default=str)[:_LONGEST_READ]
        for name in known:
            yield from _texts_of(fields[name], name, depth + 1)
    elif isinstance(body, list | tuple) and depth < _DEEPEST:
        for each in body:
            yield from _texts_of(each, key, depth + 1)
    elif isinstance(body, str | bytes):
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        yield from _texts_in(text[: 10 * _LONGEST_READ].strip(), key, depth)
    elif key in ("n_ctx", "n_prompt_tokens") and isinstance(body, int):
        yield True, f"{key} {body}"


def _texts_in(text: str, key: str, depth: int) -> Iterator[tuple[bool, str]]:
    if text[:1] in ("{", "[") and depth < _DEEPEST:
        # What a proxy was told by whom it asked; none of it where it is too deep to be read.
        with suppress(ValueError, RecursionError):
            yield from _texts_of(json.loads(text), key, depth + 1)
            return
    if text[:1] == "<":
        title = _TITLE.search(text)
        text = unescape(title[1] if title else _MARKUP.sub(" ", text))
    is_name = key in _NAMES
    if text and not (is_name and text.isdigit()):  # a number among names says nothing
        told = f"{key} {text}" if key == "retrydelay" else text
        yield is_name, told[:_LONGEST_READ]


# --- Telling from a provider's words that a request is more than its model can read. Pure.
#
# `tests/graph/models/provider_words.py` holds what providers say. Words are in lower case here.

_NUMBER: Final = (
    r"(?<![\w.,-])(\d[\d,_]*\d\d|\d+k)\b"
    r"(?! ?(?:bytes|char|[kmg]i?b\b|messages|images|requests|seconds|ms\b|%|output|completion))"
)
_LIMITS: Final = tuple(
    pattern.replace("NUMBER", _NUMBER)
    for pattern in (
        r"n_ctx NUMBER",
        r"\d \+ \d+ > NUMBER",
        r"tokens > NUMBER",
        r"must be (?:<=?|less than|at most) NUMBER",
        r"must have (?:less|fewer) than NUMBER tokens",
        r"length should be \[\d+, ?NUMBER",
        r"cannot exceed (?:[a-z ]{0,40} )?NUMBER",
        (
            r"\b(?:(?:maximum|max|available|allowed|supported)\W(?:OTHER{0,40}?\btokens\b)?"
            r"|(?:maximum|max|available|allowed|supported|model(?:'s)?|this)\WOTHER{0,40}?"
            r"(?:length|window|size|limit|allowed))\W{1,4}(?:is |of |only )*NUMBER"
        ).replace("OTHER", r"(?:(?!exceed|output|completion|new tokens)[^.;\d])"),
        r"(?:length|window|size) of \S+ is NUMBER",
        r"(?:exceeds? the maximum|context(?: window| length| size)?) of NUMBER",
        r"max_(?:seq|model|input|context)_\w+\W{1,3}NUMBER",
        r"NUMBER (?:tokens? )?(?:maximum\b|max\b|token limit)",
        r"supports? (?:only |at most |up to |a maximum of )+NUMBER",
        r"\blimit (?:for this model )?(?:is|of) NUMBER",
        r"\blimit:? NUMBER,? requested",
    )
)
"""Where words name the limit of a request: a number anywhere else is none."""
_SENT: Final = tuple(
    pattern.replace("NUMBER", _NUMBER)
    for pattern in (
        r"n_prompt_tokens NUMBER",
        r"\btotal of (?:at least )?NUMBER",
        r"(?:resulted in|requested(?: about)?|received|given:|passed|will take) NUMBER",
        r"(?:contains?|has) (?:at least |about )?NUMBER (?:\w+ )?tokens",
        r"(?:count|length|request|input|tokens) \(NUMBER",
        r"(?:count|length) (?:is|of) NUMBER",
        r"too long: NUMBER",
    )
)
_TOO_LARGE: Final = re.compile(
    # codes
    r"context_length_exceeded|contextwindowexceeded|exceed_context_size|request_too_large"
    r"|tokens_limit_reached|prompt_tokens_exceeded"
    # the context
    r"|context[ _-]?(?:length|window|size|limit).*(?:exceed|max|reduce|not enough|too l)"
    r"|(?:exceed|max|(?:long|great|larg)er|too l|overflow|beyond|not fit)"
    r".*context[ _-]?(?:length|window|size|limit)"
    # the request
    r"|(?:prompt|inputs?|request|conversation|messages)\b[^.;:]{0,30}\btoo (?:long|large)"
    r"|messages': array too long|messages\[\d+\]\.content\S* string too long"
    r"|too many (?:input |prompt |total )?tokens"
    r"|(?:prompt|inputs?|total|request)(?:\b|_)[^.;]{0,50}(?:\b|_)(?:tokens?|length)\b[^.;]{0,60}?"
    r"(?:exceed|(?:long|great|larg)er than|supports? (?:only )?up to"
    r"|must (?:be|have) (?:<|less|at most|fewer))"
    r"|inputs?`? must have (?:less|fewer)"
    r"|(?:prompt|input|request|messages|conversation)\b[^.;]{0,30}"
    r"exceed\w* (?:the )?(?:model|max|limit)"
    r"|max\w* (?:prompt|input) length|range of input length|maxlength: \d+, actual"
    r"|reduce (?:the |your )?(?:length|size|number) of (?:the |your )?(?:messages|prompt|input)"
    r"|(?:输入|提示词?|prompt|上下文|tokens?).{0,20}(?:超长|过长|超过|超出)"
)
_MOST_DIGITS: Final = 15
_CONTEXT: Final = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|(?:input|prompt) length|tokens?\b"
)
_OF_THE_REQUEST: Final = re.compile(r"input|prompt|context|messages|输入|tokens \(t")
_OF_THE_ANSWER: Final = re.compile(r"max_\w*tokens|(?:output|completion|new) tokens")
_ANSWER_ALONE: Final = re.compile(
    r"(?<!and [`'\"])(?<!\+ [`'\"])(?<!and )(?<!\+ )\bmax_\w*tokens\W{0,3}"
    r"(?:must|should|cannot|can not|exceed\w*|is too large|too large)\b(?:\D{0,20}(\d+))?"
)
"""The parameter is too large whatever was sent; not where it stands beside the input."""
_A_PART: Final = re.compile(
    r"(?:\b|_)(?:image|audio|video|file|attachment|pdf|tool|function|schema|description|name|stop"
    r"|header|ur[il]|metadata)s?\b.{0,60}?(?:too (?:long|large|many|big)|exceed|maximum)"
)
_PASSING: Final = re.compile(
    r"rate[ _-]?limit|per[ _-]?(?:min|sec|hour|day|month)|\btp[md]\b|please wait|throttl"
    r"|(?:try again|retry) (?:in|after|later)"
)


def _too_large(status: int | None, said: str) -> TooLong | None:
    """Return what words say of the size of a request, None if they are about something else."""
    most = _first(_LIMITS, said) if _CONTEXT.search(said) else 0
    added = re.search(r"(\d+) \+ (\d+) >", said)
    total = _number_of(added[1]) + _number_of(added[2]) if added else 0
    sent = max(_first(_SENT, said), total)
    if not _is_too_large(status, said, most, sent):
        return None
    return TooLong(most, sent if sent > most else 0)


def _is_too_large(status: int | None, said: str, most: int, sent: int) -> bool:
    if status in _REFUSED:
        return False
    if 0 < most < sent or "request too large" in said:  # it would not pass at any later time
        return True
    if _PASSING.search(said) or (_A_PART.search(said) and not _CONTEXT.search(said)):
        return False
    if alone := _ANSWER_ALONE.search(said):
        return bool(alone[1]) and _number_of(alone[1]) < most
    if _OF_THE_ANSWER.search(said) and not _OF_THE_REQUEST.search(said):
        return False
    return status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or bool(_TOO_LARGE.search(said))


def _first(patterns: tuple[str, ...], words: str) -> int:
    found = (re.search(pattern, words) for pattern in patterns)
    return next((_number_of(each[1]) for each in found if each), 0)


def _number_of(text: str) -> int:
    """Return the number that a text is; 0 for one of more digits than a count of tokens has."""
    digits = re.sub(r"[,_k]", "", text)
    number = int(digits) if len(digits) <= _MOST_DIGITS else 0
    return 1000 * number if text.endswith("k") else number


# --- What a provider said in place of an answer: one reading for all (TL-17a). Pure.

MAX_MESSAGE = 500
"""Characters of a provider's message that are kept; some send whole pages."""

_CLIENTS_OWN: Final = re.compile(r"^Error code: \d+(?: - )?")
_REFUSED: Final = frozenset({401, 402, 403, 404})
_IN_WORDS: Final = re.compile(r"\b(?:error code|status code|status|http)\W{0,3}\d{3}\b")
_SPENT: Final = re.compile(
    r"insufficient[ _-]?(?:quota|balance|credit|fund)|billing_(?:hard_limit|not_active)"
    r"|billing hard limit|credit balance|(?:out of|more|not enough|no) credits?\b"
    r"|used (?:all|up) [\w ]{0,20}credits?|exceeded_current_quota|spending limit|arrear|recharge"
    r"|payment required|余额不足|欠费"
)
_QUOTA: Final = re.compile(
    r"exceeded your [\w ]{0,30}(?:quota|credits)|quota.{0,40}(?:exhausted|used up|exceeded)"
    r"|usage limits?|per[ _-]?day|daily|per[ _-]?month|monthly|\b[rt]pd\b"
)
_MINUTE: Final = re.compile(r"per[ _-]?(?:min|sec|hour)|\b[rt]pm\b")
_KEY: Final = re.compile(
    r"(?:invalid|incorrect|missing|expired|wrong|valid|no) (?:[\w'-]+ ){0,3}api[ _-]?key"
    r"|api[ _-]?key (?:is )?(?:not|in|ex|missing)|invalid_api_key|api_key_invalid"
    r"|authentication_error|unauthenticated|not authenticated|unauthorized"
)
_NO_MODEL: Final = re.compile(
    r"model_not_found|\bmodel\b.{0,80}(?:does not exist|doesn't exist|not found|is unknown)"
    r"|(?:unknown|no such|invalid) model\b|not a valid model|model identifier is invalid"
)
_ONE_TOOL: Final = (
    r"\b(?:tool(?:s|_\w+)?|functions?|(?:tool|function)[ _-]?(?:call\w*|use|choice))\b"
)
_NO_TOOLS: Final = re.compile(
    rf"{_ONE_TOOL}.{{0,60}}(?:not (?:\w+ )?(?:support|enabled|available)|n't support|unsupported)"
    rf"|(?:not (?:\w+ )?support|n't support|unsupported|that support)\w*.{{0,40}}{_ONE_TOOL}"
    r"|tools? (?:\w+ )?requires? --"
)
_RATE: Final = re.compile(r"rate[ _-]?limit|too many requests|throttl|slow down")
_MODEL: Final = re.compile(r"(?<![a-z])models?(?![a-z])")
_TOOLS: Final = re.compile(r"(?<![a-z])(tool|function|schema)s?(?![a-z])")

_ANY: Final = frozenset({None, *range(600)})
_REASONS: Final[tuple[tuple[Reason, frozenset[int | None], re.Pattern[str] | None], ...]] = (
    ("auth", frozenset({401}), None),
    ("quota", frozenset({402}), None),
    ("quota", _ANY, _SPENT),
    ("rate_limited", frozenset({429}), None),
    ("tools_unsupported", _ANY, _NO_TOOLS),
    ("not_found", frozenset({404}), None),
    ("not_found", frozenset({403}), _MODEL),
    ("not_found", frozenset({None, 400, 422}), _NO_MODEL),
    ("auth", frozenset({403}), None),
    ("auth", frozenset({None, 400}), _KEY),
    ("timeout", frozenset({408}), None),
    ("rate_limited", frozenset({None}), _RATE),
    ("server", frozenset({None, 409, 425, *range(500, 600)}), None),
)
"""By status and words; the first line that fits counts. What none fits is a bad request."""


@dataclass(frozen=True)
class ProviderFailure:
    """What a provider said: ``limit`` and ``sent`` in tokens, only where its words name them.

    ``wait`` is in seconds; ``words`` are the provider's own, in one line, without secrets.
    ``of_tools`` says whether they are about tools, functions or a schema.
    """

    reason: Reason
    words: str = ""
    limit: int | None = None
    sent: int | None = None
    wait: float | None = None
    of_tools: bool = False


def read_failure(
    status: int | None, headers: Mapping[str, str], body: object, *, now: float
) -> ProviderFailure:
    """Read what a provider sent in place of an answer (TL-17a).

    ``body`` is parsed JSON or text. ``now`` is the time for a `Retry-After` that is a date. A
    failure in the midst of a stream has no status.
    """
    parts = dict.fromkeys(_texts_of(body))
    texts = [text for is_name, text in parts if not is_name] or [text for _, text in parts]
    words = printable_line(without_keys(_CLIENTS_OWN.sub("", " ".join(texts))), MAX_MESSAGE)
    said = _IN_WORDS.sub(" ", " ; ".join(text for _, text in parts)[:_LONGEST_READ].lower())
    if overflow := _too_large(status, said):
        limit, sent = overflow.most or None, overflow.sent or None
        return ProviderFailure("too_large", words, limit=limit, sent=sent)
    wait = retry_after(headers, now=now)
    if wait is None and (named := _WAIT.search(said)):
        times = re.findall(r"(\d+(?:\.\d+)?) ?(ms|milli|[smhd])", named[1])
        wait = min(sum(float(number) * _SECONDS_IN[unit] for number, unit in times), _FOR_EVER)
    # Used up for longer than an hour; a server that names a wait knows better.
    lasting = wait is None and not _MINUTE.search(said)
    used_up = lasting and status in {None, 400, 403, 429} and _QUOTA.search(said)
    reason = "quota" if used_up else _reason(status, said)
    return ProviderFailure(reason, words, wait=wait, of_tools=bool(_TOOLS.search(said)))


def _reason(status: int | None, said: str) -> Reason:
    fitting = (
        reason
        for reason, statuses, words in _REASONS
        if status in statuses and (words is None or words.search(said))
    )
    return next(fitting, "bad_request")


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
