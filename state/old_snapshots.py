"""What applications kept of a conversation in older forms, brought to the one form (CO-03). Pure.

Keys are known in any spelling (snake, camel, kebab), flat or in groups. What is not understood is
kept aside, as it was.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from daruma.state.clarification import Clarification
from daruma.state.continuity import RESUME, Continuity
from daruma.state.old_values import jsonable, reading_of, squashed

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
_GROUPS: Final = frozenset(
    [
        "continuity",
        "clarification",
        "activesubflow",
        "subflow",
        "flow",
        "pendingaction",
        "action",
        "pendingquestion",
        "dialogue",
        "conversation",
        "state",
    ]
)
_DEEPEST: Final = 4


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
    leaves = [*_leaves(jsonable(snapshot))]
    for leaf in leaves:
        read = reading_of(leaf.field, leaf.value) if leaf.field else None
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
        name, place = squashed(key), f"{path}.{key}" if path else key
        group = name in _GROUPS and isinstance(value, dict) and value and depth < _DEEPEST
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
