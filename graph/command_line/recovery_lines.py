"""What recovery would do about a failure, as a person sees it: in full, with nothing hidden."""

from collections.abc import Iterator, Mapping
from typing import Any

from daruma.graph.command_line.approval_lines import argument_lines, given_lines
from daruma.graph.command_line.paper import Line
from daruma.state.text import revealed_line


def recovery_lines(value: Mapping[str, Any]) -> list[Line]:
    """Return a ``recovery_request`` as lines.

    The failure may quote a tool, and the rest is a model's: each stands behind a mark of its own.
    """
    proposed, action = value["action"], value["action"].get("action") or {}
    tool = action.get("tool_name")
    return [
        *given_lines("it failed:", value["failure"]),
        Line("line", revealed_line(proposed["strategy"]), revealed_line(tool) if tool else ""),
        *argument_lines(action.get("parameters") or {}),
        *_said(proposed, action),
        Line("note", confidence_of(proposed["confidence"], proposed.get("by", "model"))),
    ]


def _said(proposed: Mapping[str, Any], action: Mapping[str, Any]) -> Iterator[Line]:
    told = {
        "why:": proposed.get("reasoning"),
        "expected:": proposed.get("expected_outcome"),
        "to say:": action.get("escalation_message"),
    }
    for label, text in told.items():
        if text:
            yield from given_lines(label, text)


def confidence_of(confidence: float, by: str) -> str:
    """Say how sure the choice of an action is, and who made it."""
    return f"confidence {confidence:.2f}, chosen by {by}"
