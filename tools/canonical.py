"""The one form a call is stored in: declared argument aliases and promotions applied. Pure.

It comes before the schema check, approvals and questions, so that whatever stores a call, or goes
on with it later, has canonical arguments (TL-19).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from daruma.tools.tool import Tool


@dataclass(frozen=True)
class Canonical:
    """What a tool declares: other names of its arguments, and when another tool is meant.

    The call becomes one of ``promote_to`` as soon as one argument of ``promote_when`` is given.
    """

    argument_aliases: Mapping[str, str] = field(default_factory=dict)
    promote_to: str | None = None
    promote_when: tuple[str, ...] = ()


class CanonicalCall(NamedTuple):
    """A call in its canonical form, and one line for every change that led there."""

    name: str
    args: dict[str, Any]
    changes: tuple[str, ...]


def canonical_call(name: str, args: Mapping[str, Any], tools: Sequence["Tool"]) -> CanonicalCall:
    """Bring a call into its canonical form; ``tools`` are those that the model is shown.

    A call is promoted to a visible tool only. Its arguments go over as they are, and are then read
    with the aliases of the tool it has become.
    """
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
    return CanonicalCall(name, args, tuple(changes))


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
