"""Kept between tasks: questions, continuity, and their older forms (CO-01 to CO-03)."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Final, Literal, NamedTuple, get_args

from daruma.state.record import record
from daruma.state.text import storable_text

# --- A question that a turn ended with, and what is to be done once it is answered (CO-01).

ClarificationStatus = Literal["open", "resumed", "tried", "completed", "stale", "given_up"]

MOST_ASKED: Final = 3
"""Times that the same is asked for; then the task ends, honestly failed."""


@record
class Clarification:
    """A call that lacks what only the user can say, with what is known of its arguments.

    ``owning_agent`` is the expert whose call it is, or main; ``owning_sub_commander`` the team's
    template. ``partial_args`` are canonical. ``open`` waits for the user; ``resumed`` was answered,
    and the call is to come, or was ``tried``; the others are past. ``goal`` is what the task was,
    ``asked`` counts how often the user was asked, ``also`` are further calls of the same answer
    that lack something, ``extra`` is what a snapshot of an older kind held beside this.
    """

    task_id: str = ""
    call_id: str = ""
    owning_agent: str = "main"
    owning_sub_commander: str = ""
    target_action: str = ""
    question: str = ""
    partial_args: dict[str, Any] = field(default_factory=dict)
    missing_fields: tuple[str, ...] = ()
    status: ClarificationStatus = "open"
    goal: str = ""
    asked: int = 1
    also: tuple["Clarification", ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values; ``also`` and ``extra`` only where there is something in them."""
        plain = {
            "owning_agent": self.owning_agent,
            "owning_sub_commander": self.owning_sub_commander,
            "target_action": self.target_action,
            "question": self.question,
            "partial_args": self.partial_args,
            "missing_fields": list(self.missing_fields),
            "status": self.status,
        }
        also = {"also": [each.to_dict() for each in self.also]} if self.also else {}
        return {**plain, **also, **({"extra": self.extra} if self.extra else {})}


def each_of(clarification: Clarification | None) -> tuple[Clarification, ...]:
    """Return a clarification and those beside it, each alone."""
    if clarification is None:
        return ()
    return (replace(clarification, also=()), *clarification.also)


def join_clarifications(parts: tuple[Clarification, ...]) -> Clarification | None:
    """Return several as one, the first with the others beside it; None for none."""
    return replace(parts[0], also=parts[1:]) if parts else None


def with_status(
    clarification: Clarification, status: ClarificationStatus, **changes: Any
) -> Clarification:
    """Return it, and those beside it, with another status."""
    also = tuple(replace(each, status=status) for each in clarification.also)
    return replace(clarification, status=status, also=also, **changes)


# --- Whether a message goes on with what came before it (CO-02).

RESUME: Literal["resume_after_clarification"] = "resume_after_clarification"


@record
class Continuity:
    """``fresh`` with the mode: a clarification is open, or was just answered. ``stale``: it is not
    gone on with. ``extra`` is what a snapshot of an older kind held beside this."""

    status: Literal["fresh", "stale"] = "fresh"
    mode: Literal["", "resume_after_clarification"] = ""
    extra: dict[str, Any] = field(default_factory=dict)
    schema_version: int = 1


def reduce_continuity(
    known: Continuity | Mapping[str, Any] | None, write: Continuity | Mapping[str, Any] | None
) -> Continuity | Mapping[str, Any] | None:
    """Reduce the ``continuity`` channel: what is handed over does not replace a thread's own."""
    waits = isinstance(known, Continuity) and known.status == "fresh" and known.mode == RESUME
    own = known if isinstance(known, Mapping) else waits
    return known if own and isinstance(write, Mapping) else write


# --- Reading single values of old snapshots; None for what is none of the kind.

_YES: Final = frozenset({"true", "yes", "1"})
_NO: Final = frozenset({"false", "no", "0"})
_OPEN: Final = frozenset({"fresh", "active", "pending", "awaiting", "waiting", "asked"})
_DEEPEST: Final = 50
"""Levels of a value that are kept; what is below stands there as text."""
_MOST: Final = 10_000
"""Mappings and lists that are kept of a value."""
_LARGEST: Final = 2**63 - 1


def squash_key(key: str) -> str:
    """Return a key without what differs between spellings: case and separators."""
    return "".join(each for each in key.casefold() if each not in "_-. ")


def _kept(value: Any, depth: int, room: Iterator[int]) -> Any:
    """Return a value as JSON can hold it, and every database: what is something else as text.

    It has an end, also where a value holds itself.
    """
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return _kept_whole(value)
    if depth >= _DEEPEST or next(room, None) is None:
        return f"({type(value).__name__} of {len(value)})"
    if isinstance(value, Mapping):
        return {storable_text(str(k)): _kept(each, depth + 1, room) for k, each in value.items()}
    return [_kept(each, depth + 1, room) for each in value]


def _kept_whole(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _LARGEST:
        return value
    return storable_text(value if isinstance(value, str) else repr(value)[:1000])


def _args(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _names(value: Any) -> tuple[str, ...] | None:
    given = [value] if isinstance(value, str) and value else value
    fits = isinstance(given, list) and all(isinstance(each, str) for each in given)
    return tuple(given) if fits else None


def _truth(value: Any) -> bool | None:
    word = str(value).strip().casefold()
    return True if word in _YES else False if word in _NO else None


def _status(value: Any) -> str | None:
    word = value.casefold() if isinstance(value, str) else ""
    return "open" if word in _OPEN else word if word in get_args(ClarificationStatus) else None


def _count(value: Any) -> int | None:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    is_count = isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= 1000
    return number if is_count else None


def _list(value: Any) -> list[Any] | None:
    fits = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return value if fits else None


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else None


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "target_action": lambda value: value if isinstance(value, str) and value.strip() else None,
    "partial_args": _args,
    "missing_fields": _names,
    "waits": _truth,
    "status": _status,
    "mode": lambda value: value if value in ("", RESUME) else None,
    "asked": _count,
    "schema_version": lambda value: 1 if _count(value) == 1 else None,
    "also": _list,
    "extra": _args,
}
"""By the field of a clarification; all others are text."""


# --- What applications kept of a conversation in older forms, brought to the one form (CO-03).
# Pure.
#
# Keys are known in any spelling (snake, camel, kebab), flat or in groups. What is not understood is
# kept aside, as it was.

_NAMES: Final = {
    "task_id": "taskid",
    "call_id": "callid toolcallid",
    "owning_agent": "owningagent agent owner activeagent",
    "owning_sub_commander": "owningsubcommander subcommander commander",
    "target_action": "targetaction pendingaction action activesubflow subflow flow toolname tool "
    "intent",
    "question": "question pendingquestion prompt lastquestion questiontext",
    "partial_args": "partialargs collectedargs slots collected args arguments params parameters",
    "missing_fields": "missingfields missing missingargs missingslots requiredfields",
    "status": "status",
    "waits": "awaitinguserinput waitingforuser awaitinginput isopen open",
    "mode": "mode",
    "asked": "asked timesasked",
    "schema_version": "schemaversion schema",
    "goal": "goal",
    "also": "also",
    "extra": "extra",
}
_FIELDS: Final = {name: field for field, names in _NAMES.items() for name in names.split()}
_IN_GROUPS: Final = {"name": "target_action", "text": "question", "field": "missing_fields"}
"""What only has a meaning in one of the groups."""
_GROUP_NAMES: Final = """
    continuity clarification activesubflow subflow flow pendingaction action pendingquestion
    dialogue conversation state
"""
_GROUPS: Final = frozenset(_GROUP_NAMES.split())
_DEEPEST_LEAF: Final = 4


class Migrated(NamedTuple):
    """A snapshot in the form of today; ``kept_aside`` is what has no place in it, by its path.

    It also stands in ``extra`` of the clarification, of the continuity where there is none.
    """

    continuity: Continuity
    clarification: Clarification | None
    kept_aside: dict[str, Any]


class _Leaf(NamedTuple):
    path: str
    field: str | None
    value: Any


def continuity_of(snapshot: Mapping[Any, Any]) -> Migrated:
    """Bring a snapshot of any older form into that of today; one of today stays what it is.

    Nothing is raised. There is a clarification only where an action is named that it is about.
    """
    found: dict[str, Any] = {}
    aside: dict[str, Any] = {}
    leaves = [*_leaves(_kept(snapshot, 0, iter(range(_MOST))))]
    for leaf in leaves:
        read = (_READ.get(leaf.field) or _text)(leaf.value) if leaf.field else None
        if leaf.field == "extra" and read is not None:
            for key, value in read.items():
                _put(aside, key, value)
        elif leaf.field and read is not None and found.setdefault(leaf.field, read) == read:
            continue
        else:
            _put(aside, leaf.path, leaf.value)
    if not found.get("target_action"):
        return _without_action(leaves, found, aside)
    return _with_action(found, aside)


def to_snapshot(migrated: Migrated) -> dict[str, Any]:
    """Return the canonical form: what :func:`continuity_of` reads back as the same."""
    continuity, clarification = migrated.continuity, migrated.clarification
    plain: dict[str, Any] = {"status": continuity.status, "mode": continuity.mode}
    if continuity.extra:
        plain["extra"] = continuity.extra
    return plain | ({"clarification": _plain(clarification)} if clarification else {})


def _plain(clarification: Clarification) -> dict[str, Any]:
    own = {
        "task_id": clarification.task_id,
        "call_id": clarification.call_id,
        "goal": clarification.goal,
        "asked": clarification.asked,
    }
    also = [_plain(each) for each in clarification.also]
    return clarification.to_dict() | own | ({"also": also} if also else {})


def _leaves(given: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[_Leaf]:
    """Yield what is in a snapshot and in its groups, the inmost first: it is the most exact."""
    flat = []
    for key, value in given.items():
        name, place = squash_key(key), f"{path}.{key}" if path else key
        group = name in _GROUPS and isinstance(value, dict) and value and depth < _DEEPEST_LEAF
        if group:
            yield from _leaves(value, place, depth + 1)
        else:
            own = _IN_GROUPS.get(name) if path else None
            flat.append(_Leaf(place, _FIELDS.get(name, own), value))
    yield from flat


def _put(aside: dict[str, Any], path: str, value: Any) -> None:
    while path in aside and aside[path] != value:
        path += "+"
    aside[path] = value


def _without_action(
    leaves: list[_Leaf], found: Mapping[str, Any], aside: dict[str, Any]
) -> Migrated:
    """Keep all of it aside: nobody knows what it was about."""
    for leaf in leaves:
        canonical = leaf.field in ("status", "mode") and leaf.value in ("fresh", "stale", "")
        if leaf.field in found and leaf.field != "extra" and not canonical:
            _put(aside, leaf.path, leaf.value)
    status = found.get("status")
    stale = status == "stale" and "stale" in [leaf.value for leaf in leaves]
    return Migrated(Continuity(status="stale" if stale else "fresh", extra=aside), None, aside)


def _with_action(found: dict[str, Any], aside: dict[str, Any]) -> Migrated:
    also = []
    for each in found.pop("also", ()):
        one = continuity_of(each).clarification
        if one is None:
            _put(aside, "also", each)
        else:
            also.append(one)
    waits = found.pop("waits", True)
    status = found.pop("status", "open" if waits else "stale")
    for implied in ("mode", "schema_version"):
        found.pop(implied, None)
    clarification = Clarification(**found, status=status, also=tuple(also), extra=aside)
    live = status in ("open", "resumed")
    continuity = Continuity(status="fresh", mode=RESUME) if live else Continuity(status="stale")
    return Migrated(continuity, clarification, aside)
