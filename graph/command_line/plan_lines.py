"""A plan as people read it: what is to be done, in which order, with which commands."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line, Mark

_STANDING: dict[str, Mark] = {"completed": "ok", "failed": "bad"}


def plan_lines(phases: list[dict[str, Any]]) -> list[Line]:
    """Return a plan as lines: titles, what is to be done, and every command it brings along."""
    lines = []
    for number, phase in enumerate(phases, 1):
        mark = _STANDING.get(phase.get("status", ""), "line")
        lines.append(Line(mark, f"{number}. {phase['title']}"))
        lines.extend(Line("note", text) for text in _details(phase))
    return lines


def _details(phase: Mapping[str, Any]) -> list[str]:
    after, expert = ", ".join(phase.get("depends_on", ())), phase.get("expert")
    told = {
        "after": after,
        "by": expert,
        "checked with": phase.get("validation_command"),
        "undone with": phase.get("rollback_command"),
        "if it fails": "all files are put back" if phase.get("rollback") else None,
        "settles the conflicts of": phase.get("settles"),
        "in conflict": ", ".join(phase.get("conflicts", ())),
    }
    instructions = [phase["instructions"]] if phase.get("instructions") else []
    return instructions + [f"{label}: {text}" for label, text in told.items() if text]
