"""A plan as people read it: what is to be done, in which order, with which commands."""

from collections.abc import Mapping, Sequence
from typing import Any

from daruma.graph.command_line.paper import Line, Mark
from daruma.state.text import revealed, revealed_line

_STANDING: dict[str, Mark] = {"completed": "ok", "failed": "bad"}


def review_lines(
    value: Mapping[str, Any], checks: Sequence[str] = (), *, known: bool = False
) -> list[Line]:
    """Return a plan under review, with who may work on it and how the work is judged.

    A ``known`` plan has just been shown, and is not shown again.
    """
    shown = [] if known else [Line("line", revealed(value["goal"])), *plan_lines(value["phases"])]
    told = {
        "experts": ", ".join(value.get("experts", ())),
        "the work is checked with": ", ".join(checks),
    }
    beside = [
        Line("note", f"{label}: {revealed_line(text)}") for label, text in told.items() if text
    ]
    return [*shown, *beside]


def plan_lines(phases: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return a plan as lines: titles, what is to be done, and every command it brings along."""
    lines = []
    for number, phase in enumerate(phases, 1):
        mark = _STANDING.get(phase.get("status", ""), "line")
        lines.append(Line(mark, f"{number}. {revealed_line(phase['title'])}"))
        lines.extend(Line("note", text) for text in _details(phase))
    return lines


def _details(phase: Mapping[str, Any]) -> list[str]:
    after, expert = ", ".join(phase.get("depends_on") or ()), phase.get("expert")
    told = {
        "after": after,
        "by": expert,
        "checked with": phase.get("validation_command"),
        "undone with": phase.get("rollback_command"),
        "if it fails": "all files are put back" if phase.get("rollback") else None,
        "settles the conflicts of": phase.get("settles"),
        "in conflict": ", ".join(phase.get("conflicts", ())),
    }
    instructions = [revealed(phase["instructions"])] if phase.get("instructions") else []
    return instructions + [f"{label}: {revealed(text)}" for label, text in told.items() if text]
