"""The supersteps of a thread, read without its states: which nodes ran, and what few of them wrote.

A checkpoint names the channels that led to it, among them the nodes that are next; what a node
wrote is kept with the checkpoint that it ran from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langgraph.graph import START

from daruma.graph.machine import TABLE, Each, node_of
from daruma.graph.pictures.visit import Visit

SENT: Final = "__pregel_tasks"
"""The channel of what is sent to a node, once for each item."""

_BRANCH: Final = "branch:to:"

READ: Final = (
    "__interrupt__",
    "__resume__",
    "task",
    "plan",
    "verification",
    "failure",
    "result",
)
"""Channels whose writes are read: few and small. Messages and steps are read off the state."""


@dataclass(frozen=True)
class Written:
    """What a task of a superstep wrote into a channel."""

    task: str
    channel: str
    value: Any


@dataclass(frozen=True)
class Superstep:
    """One checkpoint, and what the nodes that ran from it wrote.

    ``at`` is when it was written, in Unix seconds; ``updated`` are the channels that had changed.
    ``sent`` counts what was sent from it; ``root`` is the task's own checkpoint that a member works
    for.
    """

    namespace: str
    id: str
    parent: str | None
    at: float
    source: str = ""
    step: int | None = None
    updated: tuple[str, ...] = ()
    sent: int = 0
    written: tuple[Written, ...] = ()
    root: str = ""


@dataclass(frozen=True)
class Walked:
    """A superstep with the visits that it was made of, and when it ended (None: it has not)."""

    superstep: Superstep
    visits: tuple[Visit, ...]
    until: float | None = None

    def values(self, channel: str) -> list[Any]:
        """Return what was written into a channel."""
        return [each.value for each in self.superstep.written if each.channel == channel]


@dataclass(frozen=True)
class Walk:
    """The supersteps that led to one checkpoint, oldest first.

    ``whole`` says that the first of all is among them: nothing was thinned away.
    """

    walked: tuple[Walked, ...] = ()
    whole: bool = True
    path: tuple[Visit, ...] = field(default=())


def walk_of(supersteps: Iterable[Superstep], head: str, member: str = "") -> Walk:
    """Return the walk to a checkpoint; what was forked off it elsewhere is no part of it."""
    known = {each.id: each for each in supersteps}
    chain = list[Superstep]()
    at: str | None = head
    while at in known:
        chain.append(known[at])
        at = known[at].parent
    chain.reverse()
    walked = _walked(chain, member)
    path = tuple(visit for each in walked for visit in each.visits)
    return Walk(walked, whole=bool(chain) and _is_first(chain[0]), path=path)


def _walked(chain: Sequence[Superstep], member: str) -> tuple[Walked, ...]:
    found = list[Walked]()
    before: Superstep | None = None
    nodes: tuple[str, ...] = ()
    for now, after in zip(chain, [*chain[1:], None], strict=True):
        until = after.at if after else None
        came = _entered(now, before, nodes)
        begun = came if after or _waits(now) else ()
        seconds = None if until is None else max(until - now.at, 0.0)
        visits = tuple(Visit(node, now.at, seconds, times, member) for node, times in begun)
        found.append(Walked(now, visits, until))
        before, nodes = now, tuple(node for node, _ in came)
    return tuple(found)


def _is_first(oldest: Superstep) -> bool:
    return oldest.parent is None and (oldest.step is None or oldest.step <= 0)


def _waits(now: Superstep) -> bool:
    return any(each.channel == "__interrupt__" for each in now.written)


def _entered(
    now: Superstep, before: Superstep | None, senders: Iterable[str]
) -> tuple[tuple[str, int], ...]:
    """Return the nodes that run from a checkpoint, each with how many times."""
    pulled = [(name.removeprefix(_BRANCH), 1) for name in now.updated if name.startswith(_BRANCH)]
    pulled = [(name, times) for name, times in pulled if name in TABLE]
    if SENT in now.updated:
        pulled += [(node, before.sent if before else 1) for node in _sent_to(senders)]
    return tuple(pulled)


def _sent_to(senders: Iterable[str]) -> list[str]:
    targets = {
        node_of(target)
        for sender in senders
        if sender in TABLE and sender != START
        for target in TABLE[sender][1].values()
        if isinstance(target, Each)
    }
    return sorted(targets) or ["tool"]
