"""What a compaction says on paper."""

from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line

_MEASURES = {
    "memory": "recalled memory dropped",
    "prune": "old outputs left out",
    "shrink": "old turns shortened",
    "summarise": "old messages summarised",
    "cut": "texts cut",
}
_BY = {
    "auxiliary": "by the auxiliary model",
    "main": "by the main model",
    "rules": "by rules: no model did",
}


def compacted_lines(event: Mapping[str, Any]) -> list[Line]:
    """Return the line of a ``context_compacted`` event."""
    return [cost_line(event["cost"])]


def cost_line(cost: Mapping[str, Any]) -> Line:
    """Say how large a request was, how large it is, and what was done about it."""
    about = "" if cost["exact"] else "about "
    sizes = (
        f"context: {about}{cost['before']:,} tokens, now {cost['after']:,} of {cost['budget']:,}"
    )
    done = ", ".join(_MEASURES.get(each, each) for each in cost["saved"])
    who = f" ({cost['messages']} {_BY[cost['by']]})" if cost["by"] else ""
    return Line("note", sizes, f"{done}{who}" or "nothing could be left out")
