"""A timeline as JSON-able values."""

from dataclasses import asdict
from typing import Any

from daruma.graph.pictures.timeline import Timeline


def timeline_values(timeline: Timeline) -> dict[str, Any]:
    """Return all that a timeline adds to what else is known of a thread; times are Unix seconds."""
    return {
        "started_at": timeline.started_at,
        "updated_at": timeline.updated_at,
        "tokens": timeline.tokens,
        "usd": timeline.usd,
        "spent": {kind: list(numbers) for kind, numbers in timeline.spent.items()},
        "whole": timeline.whole,
        "moments": [asdict(each) for each in timeline.moments],
        "path": [asdict(each) for each in timeline.path],
    }
