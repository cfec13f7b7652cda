"""The walk through the machine: which nodes were entered, in their order."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Visit:
    """One node that was entered, ``times`` at once where it was entered for several calls.

    ``at`` is Unix time in seconds, ``seconds`` is None for one that has not been left. ``member``
    is the phase whose team member went there; empty for the task itself.
    """

    node: str
    at: float
    seconds: float | None = None
    times: int = 1
    member: str = ""


def nodes_walked(path: Iterable[Visit]) -> Mapping[str, int]:
    """Count how often each node was entered."""
    counted = Counter[str]()
    for visit in path:
        counted[visit.node] += visit.times
    return counted


def edges_walked(path: Iterable[Visit]) -> Mapping[tuple[str, str], int]:
    """Count how often each edge was taken; each member walks a path of its own."""
    walks: dict[str, list[str]] = {}
    for visit in path:
        walks.setdefault(visit.member, []).append(visit.node)
    return Counter(edge for walk in walks.values() for edge in pairwise(walk))
