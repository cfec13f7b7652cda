"""A compaction is one line."""

from typing import Any

import pytest

from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.output import Line
from daruma.state.events import ContextCompacted
from daruma.state.steps import ContextCost


@pytest.mark.parametrize(
    ("changes", "size", "done"),
    [
        (
            {"saved": {"memory": 400, "prune": 3000}, "exact": True},
            "context: 8,204 tokens, now 5,630 of 8,000",
            "recalled memory dropped, old outputs left out",
        ),
        (
            {"saved": {"summarise": 2000}, "messages": 57, "by": "rules"},
            "context: about 8,204 tokens, now 5,630 of 8,000",
            "old messages summarised (57 by rules: no model did)",
        ),
        (
            {"saved": {}},
            "context: about 8,204 tokens, now 5,630 of 8,000",
            "nothing could be left out",
        ),
    ],
)
def test_it_says_how_large_it_was_and_what_was_done(
    changes: dict[str, Any], size: str, done: str
) -> None:
    """CX-01 and FA-04."""
    cost = ContextCost(node="main", budget=8000, before=8204, after=5630, **changes)

    (line,) = lines_of(ContextCompacted(node="main", cost=cost.to_dict()).to_dict())

    assert line == Line("note", size, done)
