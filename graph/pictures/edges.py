"""The edges of the machine, read off its table: one for each pair of nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from langgraph.graph import END

from daruma.graph.machine import ENTRY, ON_BUG, RECOVERED, TABLE, Each, node_of

BEGINNING: Final = "start"
ENDING: Final = "end"
EITHER: Final = "recovery or consult"
"""Stands for both where they lead to the same: what is done about a failure (``RECOVERED``)."""


@dataclass(frozen=True)
class Edge:
    """From one node to another. ``each`` is entered once for every item, ``bug`` by handlers only.

    ``sources`` are the nodes that it stands for.
    """

    source: str
    target: str
    outcomes: tuple[str, ...] = ()
    each: bool = False
    bug: bool = False

    @property
    def label(self) -> str:
        """The outcomes, on one line."""
        return "bug" if self.bug else ", ".join(self.outcomes)

    @property
    def sources(self) -> tuple[str, ...]:
        """The nodes that it begins at."""
        return ("recovery", "consult") if self.source == EITHER else (self.source,)


def edges() -> tuple[Edge, ...]:
    """Return all edges, those of error handlers last."""
    return (Edge(BEGINNING, ENTRY), *_steps(), *_bugs())


def _steps() -> Iterator[Edge]:
    for name, (_, outcomes) in TABLE.items():
        if name == "consult":
            continue  # it leads where recovery does
        by_target: dict[str, list[str]] = {}
        for outcome, target in outcomes.items():
            by_target.setdefault(_end(node_of(target)), []).append(outcome)
        sent = {node_of(target) for target in outcomes.values() if isinstance(target, Each)}
        for target, labels in by_target.items():
            both = name == "recovery" and {*labels} <= RECOVERED.keys()
            yield Edge(EITHER if both else name, target, tuple(labels), target in sent)


def _bugs() -> Iterator[Edge]:
    """Yield the edges that only handlers take, but for where most lead: that is told in words."""
    most = most_bugs_lead_to()
    for name, target in ON_BUG.items():
        if target not in most:
            yield Edge(name, _end(target), bug=True)


def most_bugs_lead_to() -> tuple[str, ...]:
    """Return where the bugs of several nodes lead."""
    targets = [*ON_BUG.values()]
    return tuple(sorted({target for target in targets if targets.count(target) > 1}))


def _end(target: str) -> str:
    return ENDING if target == END else target
