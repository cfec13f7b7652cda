"""A budget of tokens, money or time that is spent, and what became of that, on paper."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.state.spending import shown

Event = Mapping[str, Any]


def spent_lines(event: Event) -> list[Line]:
    """Say which limit is reached, and how much is spent."""
    measure = event["measure"]
    used, limit = shown(measure, event["spent"]), shown(measure, event["limit"])
    return [Line("bad", f"the {event['scope']}'s budget is spent", f"{used} of {limit}")]


def settled_lines(event: Event) -> list[Line]:
    """Say what was granted, or that the work stops."""
    if event["stopped"]:
        return [Line("note", "the work stops where its budget is spent")]
    return [Line("ok", f"granted {shown(event['measure'], event['more'])} more")]
