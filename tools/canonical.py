"""The one form a call is stored in: declared argument aliases and promotions applied. Pure.

It comes before the schema check, approvals and questions, so that whatever stores a call, or goes
on with it later, has canonical arguments (TL-19).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from daruma.tools.tool import Tool


DateKind = Literal["date", "time"]


@dataclass(frozen=True)
class Canonical:
    """What a tool declares: other names of its arguments, and when another tool is meant.

    The call becomes one of ``promote_to`` as soon as one argument of ``promote_when`` is given.
    ``dates`` are arguments that come in ISO form: a ``date`` names a day, and may have a time, a
    ``time`` may be either or both. ``ask_for`` holds the question for each argument that the user
    is asked for where it is missing, or can not be read.
    """

    argument_aliases: Mapping[str, str] = field(default_factory=dict)
    promote_to: str | None = None
    promote_when: tuple[str, ...] = ()
    dates: Mapping[str, DateKind] = field(default_factory=dict)
    ask_for: Mapping[str, str] = field(default_factory=dict)


class CanonicalCall(NamedTuple):
    """A call in its canonical form, and one line for every change that led there.

    ``unread`` are the dates among ``args`` that say no day or time beyond doubt.
    """

    name: str
    args: dict[str, Any]
    changes: tuple[str, ...]
    unread: tuple[str, ...] = ()


def canonical_call(
    name: str, args: Mapping[str, Any], tools: Sequence["Tool"], now: datetime | None = None
) -> CanonicalCall:
    """Bring a call into its canonical form; ``tools`` are those that the model is shown.

    A call is promoted to a visible tool only. Its arguments go over as they are, and are then read
    with the aliases of the tool it has become; last its dates are, from ``now`` on, if it is given.
    """
    if not any(tool.canonical for tool in tools):
        return CanonicalCall(name, dict(args), ())
    declared = {tool.name: tool.canonical for tool in tools}
    changes: list[str] = []
    passed: set[str] = set()
    args = dict(args)
    while name not in passed and (canonical := declared.get(name)) is not None:
        passed.add(name)
        renamed = _renames(args, canonical.argument_aliases)
        changes += [f"{name}: {alias} is {key}" for alias, key in renamed.items()]
        args = {renamed.get(key, key): value for key, value in args.items()}
        given = [key for key in canonical.promote_when if _given(args.get(key))]
        if given and canonical.promote_to in declared:
            changes.append(f"{name} with {given[0]} is {canonical.promote_to}")
            name = canonical.promote_to
    read = _moments(declared.get(name), args, now) if now else {}
    moments = {key: moment for key, moment in read.items() if moment not in (None, args[key])}
    changes += [f"{name}: {key} {args[key]:.80} is {moment}" for key, moment in moments.items()]
    unread = tuple(key for key, moment in read.items() if moment is None)
    return CanonicalCall(name, args | moments, tuple(changes), unread)


def _moments(
    canonical: Canonical | None, args: Mapping[str, Any], now: datetime
) -> dict[str, str | None]:
    """Return the dates of a call in ISO form, None for what is in doubt."""
    dates = canonical.dates if canonical else {}
    if not dates:
        return {}
    from daruma.tools.dates.moments import has_day, moment_in  # dates in six languages: rarely

    found: dict[str, str | None] = {}
    for key, kind in dates.items():
        said = args.get(key)
        if isinstance(said, str) and said.strip():
            moment = moment_in(said, now)
            found[key] = moment if moment and (kind == "time" or has_day(moment)) else None
    return found


def _renames(args: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, str]:
    """Return the aliases to replace: none whose argument would then have two different values."""
    used = {alias: key for alias, key in aliases.items() if alias in args and alias != key}
    values: dict[str, set[str]] = {}
    for name, value in args.items():
        values.setdefault(used.get(name, name), set()).add(_text(value))
    return {alias: key for alias, key in used.items() if len(values[key]) == 1}


def _text(value: object) -> str:
    """Return what a value is in JSON, where true is not 1."""
    return json.dumps(value, sort_keys=True, default=repr)


def _given(value: object) -> bool:
    return value is not None and value != ""
