"""The walk through the machine: supersteps, read without states, and visits; where a thread stands.

Both are read out of Postgres without the engine that runs threads (FA-13): a command that only
looks would wait longer for the import of LangGraph's engine than for all else.
"""

from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.constants import START

from daruma.graph.machine import TABLE, Each, node_of
from daruma.graph.standing import read_pending
from daruma.graph.storage import PostgresSaver, channel_values, open_writes
from daruma.state.channels import DELTA, State, apply_update, refuse_misfits
from daruma.state.serializer import DeltaSnapshot

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

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

_OWN: Final = ("task", "plan", "verification", "failure", "result", "drifted")
READ: Final = ("__interrupt__", "__resume__", *_OWN)
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


# --- Reading supersteps out of Postgres: two queries, whatever the length of a thread.

_CHECKPOINTS: Final = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint ->> 'ts' AS ts,
    checkpoint -> 'updated_channels' AS updated, metadata ->> 'source' AS source,
    metadata ->> 'step' AS step, metadata -> 'parents' ->> '' AS root
FROM daruma_checkpoints WHERE thread_id = %s ORDER BY checkpoint_id
"""
_WRITES: Final = """
SELECT checkpoint_ns, checkpoint_id, task_id, task_path, slot, channels, type, blob
FROM daruma_writes WHERE thread_id = %s AND channels && %s
ORDER BY checkpoint_id, task_path, task_id, slot
"""
Row = Mapping[str, Any]


async def read_supersteps(saver: PostgresSaver, thread: str) -> list[Superstep]:
    """Return all supersteps of a thread, those of its members too, oldest first.

    Raises :class:`~daruma.state.errors.DamagedState` for a write that can not be read.
    """
    saver = saver.looking()
    checkpoints, writes = await saver.home(lambda: _read(saver, thread))
    by_checkpoint = defaultdict[tuple[str, str], list[Row]](list)
    for row in writes:
        by_checkpoint[row["checkpoint_ns"], row["checkpoint_id"]].append(row)
    return [
        _stored_superstep(
            saver, thread, row, by_checkpoint[row["checkpoint_ns"], row["checkpoint_id"]]
        )
        for row in checkpoints
    ]


async def _read(saver: PostgresSaver, thread: str) -> tuple[Sequence[Row], Sequence[Row]]:
    async with saver.reading() as cursor:
        await cursor.execute(_CHECKPOINTS, [thread])
        checkpoints = await cursor.fetchall()
        await cursor.execute(_WRITES, [thread, [*READ, SENT]])
        return checkpoints, await cursor.fetchall()


def _stored_superstep(
    saver: PostgresSaver, thread: str, row: Row, writes: Sequence[Row]
) -> Superstep:
    found = [
        (each["task_id"], write)
        for each in writes
        for write in open_writes(thread, each, saver.sealing)[1]
    ]
    updated = row["updated"] if isinstance(row["updated"], list) else []
    return Superstep(
        namespace=row["checkpoint_ns"],
        id=row["checkpoint_id"],
        parent=row["parent_checkpoint_id"],
        at=datetime.fromisoformat(row["ts"]).timestamp() if row["ts"] else 0.0,
        source=row["source"] or "",
        step=int(row["step"]) if row["step"] else None,
        root=row["root"] or "",
        updated=tuple(map(str, updated)),
        sent=sum(write.channel == SENT for _, write in found),
        written=tuple(
            Written(task, write.channel, saver.serde.loads_typed((write.kind, write.payload)))
            for task, write in found
            if write.channel in READ and write.kind != "null"
        ),
    )


# --- Where a thread stands, as ``Machine.get_state`` tells it.

Snapshot = namedtuple(  # its fields are those of LangGraph's
    "Snapshot", "values next config metadata created_at parent_config tasks interrupts"
)
"""LangGraph's ``StateSnapshot``, for who only looks and imports no LangGraph (FA-13)."""

_FIELDS: Final = frozenset(State.__dataclass_fields__)


async def read_snapshot(
    saver: PostgresSaver, thread: str, namespace: str = ""
) -> "StateSnapshot | None":
    """Return where a thread stands; None where there is no such thread.

    ``next`` and ``tasks`` are left out. Raises :class:`~daruma.state.errors.DamagedState`.
    """
    saver = saver.expecting(refuse_misfits).looking()
    named = {"thread_id": thread, "checkpoint_ns": namespace}
    found = await saver.aget_tuple({"configurable": named})
    if found is None:
        return None
    held = found.checkpoint["channel_values"]
    values = {
        name: value.value if isinstance(value, DeltaSnapshot) else value
        for name, value in held.items()
        if name in _FIELDS
    }
    versions = found.checkpoint["channel_versions"]
    lacking = [name for name in DELTA if name in versions and name not in values]
    if lacking:
        values |= await channel_values(saver, found, lacking)
    state, (questions, finished) = State(**values), read_pending(found)
    for written in finished:
        own: Any = {name: value for name, value in written.items() if name in _FIELDS}
        state = apply_update(state, own)
    snapshot: Any = Snapshot(
        values=vars(state),
        next=(),
        config=found.config,
        metadata=found.metadata,
        created_at=found.checkpoint["ts"],
        parent_config=found.parent_config,
        tasks=(),
        interrupts=tuple(questions),
    )
    return cast("StateSnapshot", snapshot)
