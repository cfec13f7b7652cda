"""What a run says of the lessons that it was given."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line


def lessons_lines(event: Mapping[str, Any]) -> list[Line]:
    """Return the line for `lessons_given`: how much there was, or why it could not be had."""
    if event["note"]:
        return [Line("note", event["note"])]
    parts = (
        _number(len(event["pitfalls"]), "historical pitfall"),
        _number(len(event["variants"]), "learned instruction"),
    )
    return [Line("note", f"told of {' and '.join(part for part in parts if part)}")]


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}" if count else ""
