"""The walk through the machine: supersteps, read without states, and visits."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.constants import START

from daruma.graph.machine import TABLE, Each, node_of

# --- The walk through the machine: which nodes were entered, in their order.


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


# --- The supersteps of a thread, read without its states: which nodes ran, and what few of them
# wrote.
#
# A checkpoint names the channels that led to it, among them the nodes that are next; what a node
# wrote is kept with the checkpoint that it ran from.

SENT: Final = "__pregel_tasks"
"""The channel of what is sent to a node, once for each item."""

_BRANCH: Final = "branch:to:"
_BY_HAND: Final = ("update", "fork")
"""Sources of a checkpoint that no node has led to: it was edited, or set back to."""

READ: Final = ("__interrupt__", "__resume__", "task", "plan", "verification", "failure", "result")
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
    oldest = chain[0] if chain else None
    whole = oldest is not None and oldest.parent is None and (oldest.step or 0) <= 0
    return Walk(walked, whole=whole, path=path)


def _walked(chain: Sequence[Superstep], member: str) -> tuple[Walked, ...]:
    found = list[Walked]()
    before: Superstep | None = None
    nodes: tuple[str, ...] = ()
    for now, after in zip(chain, [*chain[1:], None], strict=True):
        by_hand = after and after.source in _BY_HAND  # later than all that ran from here
        until = now.at if by_hand else after.at if after else None
        came = _entered(now, before, nodes)
        waits = any(each.channel == "__interrupt__" for each in now.written)
        begun = came if after or waits else ()
        seconds = None if until is None else max(until - now.at, 0.0)
        visits = tuple(Visit(node, now.at, seconds, times, member) for node, times in begun)
        found.append(Walked(now, visits, until))
        before, nodes = now, tuple(node for node, _ in came)
    return tuple(found)


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


# --- Reading supersteps out of any checkpointer, by the list of its checkpoints.


def supersteps_of(listed: Iterable[CheckpointTuple]) -> list[Superstep]:
    """Return the supersteps of a thread's checkpoints, oldest first."""
    return sorted((_superstep(each) for each in listed), key=lambda each: each.id)


def _superstep(found: CheckpointTuple) -> Superstep:
    named = found.config["configurable"]
    parent = (found.parent_config or {}).get("configurable", {})
    metadata: dict[str, Any] = dict(found.metadata or {})
    writes = found.pending_writes or ()
    return Superstep(
        namespace=named.get("checkpoint_ns", ""),
        id=found.checkpoint["id"],
        parent=parent.get("checkpoint_id"),
        at=datetime.fromisoformat(found.checkpoint["ts"]).timestamp(),
        source=str(metadata.get("source", "")),
        step=metadata.get("step"),
        root=str((metadata.get("parents") or {}).get("", "")),
        updated=tuple(found.checkpoint.get("updated_channels") or ()),
        sent=sum(channel == SENT for _, channel, _ in writes),
        written=tuple(
            Written(task, channel, value)
            for task, channel, value in writes
            if channel in READ and value is not None
        ),
    )
