"""What a model answered that was asked to repair: what fits is taken, the rest is not."""

from collections.abc import Collection, Iterator
from typing import Any

from daruma.tools.repair.equality import same
from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.texts import readings

NO_NAMES: frozenset[str] = frozenset()


def name_repairs(text: str, asked_ids: Collection[str], visible: Collection[str]) -> dict[str, str]:
    """Return the tool's name for each call that was asked about and got exactly one that exists."""
    return {
        call_id: name
        for call_id, name in _repairs(text, asked_ids, "name").items()
        if isinstance(name, str) and name in visible
    }


def argument_repairs(text: str, asked_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the arguments for each call that was asked about and got exactly one object."""
    return {
        call_id: args
        for call_id, args in _repairs(text, asked_ids, "arguments").items()
        if isinstance(args, dict)
    }


def _repairs(text: str, asked_ids: Collection[str], field: str) -> dict[str, Any]:
    """Return what was said of each call, without those of which two things were said."""
    found: dict[str, Any] = {}
    contradicted: set[str] = set()
    for call_id, said in _said(text, field):
        if call_id in found and not same(found[call_id], said):
            contradicted.add(call_id)
        found[call_id] = said
    wanted = set(asked_ids) - contradicted
    return {call_id: said for call_id, said in found.items() if call_id in wanted}


def _said(text: str, field: str) -> Iterator[tuple[str, Any]]:
    for each in _entries(text):
        if isinstance(each, dict) and field in each and isinstance(each.get("tool_call_id"), str):
            yield each["tool_call_id"], each[field]


def _entries(text: str) -> list[Any]:
    try:
        found = readings(text, NO_NAMES)
    except Unreadable:
        return []
    value = found[0].value
    entries = value.get("repairs") if len(found) == 1 and not found[0].unclosed else None
    return entries if isinstance(entries, list) else []
