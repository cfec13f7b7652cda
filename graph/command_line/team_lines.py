"""What is told of a team: who takes up which phase, and how its work comes together."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.rollback_lines import named_lines

Event = Mapping[str, Any]


def taken_up_lines(event: Event) -> list[Line]:
    """Tell who takes up a phase, and where."""
    return [
        Line("head", f"{event['expert']} takes up {event['phase_id']}", event["workspace"] or "")
    ]


def ended_lines(event: Event) -> list[Line]:
    """Tell how a member's work ended."""
    done = event["outcome"] == "completed"
    ended = f"{event['expert']} has ended {event['phase_id']}: {event['outcome']}"
    return [Line("ok" if done else "bad", ended)]


def merged_lines(event: Event) -> list[Line]:
    """Tell what came into the workspace, or which files stood in the way of it."""
    phase, paths, conflicts = event["phase_id"], event["paths"], event["conflicts"]
    if conflicts:
        text = f"{phase} is not merged: {_files(len(conflicts))} met other work"
        return [Line("bad", text), *named_lines(conflicts, len(conflicts))]
    return [Line("ok", f"{phase} is merged", _files(len(paths)))]


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
