"""Keeping keys out of what is stored and shown (SE-08): servers quote them, models repeat them.

Each node's update is masked by ``ExactCalls.mask_update``, as the scope of a run calls the node.
"""

import dataclasses
import json
import os
import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from html import escape
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, quote_plus

from pydantic import BaseModel

MASK: Final = "[key]"

# --- What well-known tokens look like, by their makers' own documentation.

SHAPES: Final = (
    ("sk-", r"\bsk-[\w*.-]{6,}"),  # OpenAI, Anthropic and alike; a server may have masked a part
    ("_live_", r"\b[spr]k_live_\w{10,}|\bwhsec_\w{16,}"),  # Stripe
    ("_test_", r"\b[sr]k_test_\w{10,}"),
    ("whsec_", r"\bwhsec_[\w+/=]{16,}"),
    *((f"gh{kind}_", rf"\bgh{kind}_\w{{20,}}") for kind in "pousr"),
    ("github_pat_", r"\bgithub_pat_\w{20,}"),
    ("glpat-", r"\bglpat-[\w-]{15,}"),
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b"),
    ("AIza", r"\bAIza[\w-]{30,}"),
    ("ya29.", r"\bya29\.[\w.-]{15,}"),
    ("GOCSPX-", r"\bGOCSPX-[\w-]{15,}"),
    ("xox", r"\bxox[abeoprs]-[\w-]{10,}"),
    ("xapp-", r"\bxapp-[\w-]{10,}"),
    ("hooks.slack.com/", r"\bhooks\.slack\.com/(?:services|workflows)/[\w/-]{10,}"),
    ("hf_", r"\bhf_\w{16,}"),
    ("npm_", r"\bnpm_\w{20,}"),
    ("SG.", r"\bSG\.[\w-]{10,}\.[\w-]{10,}"),
    ("pypi-", r"\bpypi-[\w-]{16,}"),
    ("dop_v1_", r"\bdo[opr]_v1_\w{16,}"),
    ("shp", r"\bshp(?:at|ca|pa|ss)_\w{16,}"),
    ("sq0", r"\bsq0[a-z]{3}-[\w-]{20,}"),
    ("EAAC", r"\b(?<![+/=])EAAC\w{30,}"),
    ("SK", r"\bSK[0-9a-f]{32}\b"),  # Twilio
    ("gsk_", r"\bgsk_\w{20,}"),
    ("xai-", r"\bxai-\w{20,}"),
    ("r8_", r"\br8_\w{30,}"),
    ("lsv2_", r"\blsv2_(?:pt|sk)_\w{20,}"),
    ("eyJ", r"\b(?<!-)eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"),
    ("-----BEGIN ", (r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
     r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)")),
)  # fmt: skip
"""What each begins with or holds, and its whole shape: to look for the first takes a hundredth."""

NAMED: Final = (
    ("ecret", (r"(?i:secret_?access_?key[\"']?\s{0,4}(?:=>|[:=])\s{0,4}[\"']?)"
     r"(?P<aws>[\w/+=]{30,})")),
    ("Key=", r"\b(?:AccountKey|SharedAccessKey)=(?P<azure>[\w+/=]{16,})"),
    ("AccessSignature=", r"\bSharedAccessSignature=(?P<sas>[^\s;\"']{10,})"),
    ("sig=", r"[?&]sig=(?P<sig>[\w%+/=-]{20,})"),
    ("earer ", r"\b[Bb]earer (?P<bearer>(?=[\w.~+/-]{0,40}\d|[\w.~+/-]{24})[\w.~+/-]{16,}=*)"),
    ("uthorization", (r"(?i:\bauthorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|token|basic|key)"
     r"\s{1,4})(?P<header>[^\s\"',;\[]{6,})")),
    ("asic ", r"\b[Bb]asic (?P<basic>[A-Za-z0-9+/]{8,}={0,2})(?![\w+/])"),
    ("AC", r"\bAC[0-9a-f]{32}:(?P<twilio>[0-9a-f]{32})\b"),
    ("://", (r"(?<=://)(?P<url>[^/\s:@\"'<>?#]{0,200}:(?![{$%<])[^\s\"'<>/]{1,300}(?=@)"
     r"|[\w.~-]{20,200}(?=@))")),
)  # fmt: skip
"""The same for what only its surroundings tell to be a key: the group alone is masked."""

_HELD: Final = tuple(holds for holds, _ in (*SHAPES, *NAMED))
_EDGE: Final = r"(?:(?a:\b)|(?<=\\[bfnrt])|(?<=\\x[\da-fA-F]{2})|(?<=\\u[\da-fA-F]{4}))"
"""Where a word of ASCII begins or ends: beside other letters, and behind an escape, too."""

_COMPILED: Final = tuple(
    (holds, re.compile(shape.replace(r"\b", _EDGE))) for holds, shape in (*SHAPES, *NAMED)
)

# --- Values that are secrets because of where they stand: environment, `.env`, what was noted.

_SECRET_PARTS: Final = frozenset(
    {"KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS"}
    | {"PASS", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "PAT"}
    | {"AUTH", "AUTHORIZATION", "COOKIE"}
)
_SECRET_ENDS: Final = ("APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "_PWD")
_SHORTEST: Final = 6
"""Characters; anything shorter is an ordinary word."""

_ORDINARY: Final = re.compile(r"[A-Za-z]?[a-z]{,11}|[A-Z]{,11}|\d{,7}|\W*")
"""Words such as `postgres` and small numbers are no secrets, wherever they stand."""

_RANDOM: Final = re.compile(r"(?=\D*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[\w+/=-]{20,}|[0-9a-f]{32,}")
_PASSWORD: Final = re.compile(r"://[^/\s:@]*:([^\s/]+)@")
_ASSIGNED: Final = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*(\"[^\"\n]*\"|'[^'\n]*'|[^\s#]*)",
    re.MULTILINE,
)
_LARGEST: Final = 64 * 1024

_last_read: list[tuple[str, ...]] = []
_noted: dict[str, None] = {}
"""Values that this process was given as keys otherwise: by a model, an MCP server's settings."""


def note_secrets(values: Iterable[str]) -> None:
    """Have values masked from now on, in all that this process stores and shows."""
    _noted.update(dict.fromkeys(values))


@lru_cache(maxsize=4096)
def names_secret(name: str) -> bool:
    """Whether a variable or header says by its name that its value is a secret."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().replace("-", "_")
    return not _SECRET_PARTS.isdisjoint(plain.split("_")) or plain.endswith(_SECRET_ENDS)


def note_env_file(folder: str | Path) -> None:
    """Have the secrets masked that the ``.env`` of a folder holds now."""
    path = Path(folder, ".env").absolute()
    try:
        status = path.stat()
        note_secrets(_of_file(path, status.st_mtime_ns, min(status.st_size, _LARGEST)))
    except (OSError, ValueError):
        return


@lru_cache(maxsize=64)
def _of_file(path: Path, changed_at: int, size: int) -> tuple[str, ...]:  # noqa: ARG001 - a key
    if not path.is_file():
        return ()
    with path.open("rb") as file:
        text = file.read(size).decode("utf-8", "replace")
    found = ((name, value.strip("\"'")) for name, value in _ASSIGNED.findall(text))
    return tuple(each for pair in found for each in secrets_in(*pair, random=True))


def secrets_in(name: str, value: str, *, random: bool = False) -> Iterator[str]:
    """Yield what of a value is secret by its name, where it is one, or (``random``) by its look."""
    if names_secret(name) or (random and _RANDOM.fullmatch(value)):
        yield value
    elif "://" in value:
        yield from _PASSWORD.findall(value)


def read_live_values(keys: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the values that are secrets now, in all forms that they are written in.

    :func:`mask_keys` goes by those that were read last: by each run, as it begins.
    """
    named = [name for name in os.environ if names_secret(name) or name.upper().endswith("_URL")]
    found = [each for name in named for each in secrets_in(name, os.environ.get(name, ""))]
    forms = _forms((*found, *_noted))
    _last_read[:] = [forms]
    return _forms((*found, *_noted, *keys)) if keys else forms


@lru_cache(maxsize=256)
def _forms(values: tuple[str, ...]) -> tuple[str, ...]:
    secret = {v for v in values if _is_secret(v)}
    literals = (json.dumps, partial(json.dumps, ensure_ascii=False), repr)
    quoted = {write(v)[1:-1] for write in literals for v in secret}
    forms = secret | quoted | {write(v)[1:-1] for write in literals for v in quoted}
    forms |= {write(v) for write in (partial(quote, safe=""), quote_plus, escape) for v in secret}
    return tuple(sorted(forms, key=len, reverse=True))


@lru_cache(maxsize=256)
def _marks(forms: tuple[str, ...]) -> tuple[str, ...]:
    """Return what any of the forms holds: fewer and shorter texts, to be looked for first."""
    runs = {max(re.findall("[A-Za-z0-9]+", form), key=len, default="") for form in forms}
    return tuple(run for run in runs if not any(each in run for each in runs - {run}))


def _is_secret(value: str) -> bool:
    if len(value) < _SHORTEST or _ORDINARY.fullmatch(value):
        return False
    return not (value.startswith(("/", "~")) and os.path.exists(os.path.expanduser(value)))  # noqa: PTH110, PTH111 - no error for odd values


# --- One filter for texts, and for all that holds texts.


def without_keys(text: str, keys: Iterable[str] = ()) -> str:
    """Return a text in which `[key]` stands for `keys`, for those of the environment, and alike.

    It takes linear time. User names and passwords in addresses are among them.
    """
    return _without(text, read_live_values(tuple(keys)))


T = TypeVar("T")


def mask_keys(value: T) -> T:
    """Return a value whose texts hold no keys, at any depth; the very same where none does.

    Lists, dicts, dataclasses and messages are looked into; all else stays as it is.
    """
    live = _last_read[0] if _last_read else read_live_values()
    texts: list[str] = []
    _gather(value, texts)
    held = "\0".join(texts).__contains__
    if not any(map(held, _HELD)) and not (any(map(held, _marks(live))) and any(map(held, live))):
        return value
    found: T = _rebuilt(value, live)
    return found


def _without(text: str, live: Sequence[str]) -> str:
    for each in live:
        if each in text:
            text = text.replace(each, MASK)
    for holds, shape in _COMPILED:
        if holds in text:
            text = shape.sub(_mask_group, text)
    return text


def _mask_group(found: re.Match[str]) -> str:
    group = found.lastgroup
    if group is None:
        return MASK
    if group == "basic" and not _is_user_and_password(found[group]):
        return found[0]
    start, end = (place - found.start() for place in found.span(group))
    return found[0][:start] + MASK + found[0][end:]


def _is_user_and_password(text: str) -> bool:
    try:
        plain = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (NoBase64, ValueError):
        return False
    return b":" in plain and plain.isascii()


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind) if each.init)


@lru_cache(maxsize=1024)  # some classes are made for one request
def _reader_of(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return what reads the parts of a value of a kind; None for what has none.

    Kinds are told apart once: most values of a record have no parts, and asking whether each is a
    message takes longer than all else here.
    """
    if issubclass(kind, dict):
        return lambda value: (*value.keys(), *value.values())
    if issubclass(kind, list | tuple | set | frozenset):
        return iter
    if issubclass(kind, BaseModel):
        return lambda value: (value.__dict__, value.__pydantic_extra__)  # messages take any field
    if dataclasses.is_dataclass(kind):
        return lambda value: [getattr(value, name) for name in _fields(kind)]
    return None


def _gather(value: Any, texts: list[str]) -> None:
    kind: Any = type(value)
    if issubclass(kind, str):
        texts.append(value)
    elif read := _reader_of(kind):
        for each in read(value):
            _gather(each, texts)


def _rebuilt(value: Any, live: Sequence[str]) -> Any:
    after = value
    if isinstance(value, str):
        after = _without(value, live)
    elif isinstance(value, dict):
        after = {_rebuilt(key, live): _rebuilt(each, live) for key, each in value.items()}
    elif isinstance(value, list | set | frozenset):
        after = type(value)(_rebuilt(each, live) for each in value)
    elif isinstance(value, tuple):
        parts = [_rebuilt(each, live) for each in value]
        after = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif isinstance(value, BaseModel):
        given = {**value.__dict__, **(value.__pydantic_extra__ or {})}
        after = value.model_copy(update=_changes(given, live))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {name: getattr(value, name) for name in _fields(type(value))}
        changes = _changes(given, live)
        after = dataclasses.replace(value, **changes) if changes else value
    return after


def _changes(given: dict[str, Any], live: Sequence[str]) -> dict[str, Any]:
    after = {name: _rebuilt(each, live) for name, each in given.items()}
    return {name: each for name, each in after.items() if each != given[name]}


# --- Exceptions: a node's is stored as its ``repr``, and told with what lies behind it.


def mask_error(error: Exception) -> Exception:
    """Take the keys out of an exception and those behind it, and return it.

    One that keeps its words out of reach, as pydantic's do, is stood in for by another; so is one
    with a value that holds itself.
    """
    said = repr(error)
    with suppress(RecursionError):
        for each in _with_those_behind(error):
            each.args = mask_keys(each.args)
            each.__dict__.update(mask_keys(each.__dict__))
        said = repr(error)
        if without_keys(said) == said:
            return error
    return RuntimeError(without_keys(said)).with_traceback(error.__traceback__)


def _with_those_behind(error: BaseException) -> Iterator[BaseException]:
    known, waiting = set[int](), [error]
    while waiting:
        each = waiting.pop()
        if id(each) not in known:
            known.add(id(each))
            yield each
            behind = (each.__cause__, each.__context__)
            parts = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
            waiting += [*parts, *(other for other in behind if other)]
