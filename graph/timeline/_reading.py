"""Threads read out of Postgres without the engine that runs them (FA-13).

A command that only looks would wait longer for the import of LangGraph's engine than for all else.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.standing import read_pending
from daruma.graph.storage import PostgresSaver, channel_values, open_writes
from daruma.graph.timeline._record import member_record, members_in, record_of
from daruma.graph.timeline._timeline import Timeline, timeline_of
from daruma.graph.timeline._walk import READ, SENT, Superstep, Written
from daruma.state.channels import DELTA, State, apply_update, refuse_misfits
from daruma.state.serializer import DeltaSnapshot

# --- Where a thread stands, as ``Machine.get_state`` tells it.

_FIELDS: Final = frozenset(State.__dataclass_fields__)


async def read_snapshot(
    saver: PostgresSaver, thread: str, namespace: str = ""
) -> StateSnapshot | None:
    """Return where a thread stands; None where there is no such thread.

    ``next`` and ``tasks`` are left out. Raises :class:`~daruma.state.errors.DamagedState`.
    """
    saver = saver.expecting(refuse_misfits)
    config = RunnableConfig(configurable={"thread_id": thread, "checkpoint_ns": namespace})
    found = await saver.aget_tuple(config)
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
    return StateSnapshot(
        values=vars(state),
        next=(),
        config=found.config,
        metadata=found.metadata,
        created_at=found.checkpoint["ts"],
        parent_config=found.parent_config,
        tasks=(),
        interrupts=tuple(questions),
    )


async def read_timeline(saver: PostgresSaver, snapshot: StateSnapshot) -> Timeline:
    """Return what happened on the thread that a snapshot was read of."""
    thread = snapshot.config["configurable"]["thread_id"]
    supersteps = await read_supersteps(saver, thread)
    record = record_of(thread, snapshot, supersteps)
    members = []
    for name, own in members_in(supersteps, record.walk).items():
        stands = await read_snapshot(saver, thread, name)
        members += [member_record(record, stands, own)] if stands else []
    return timeline_of(record, snapshot, [each for each in members if each])


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
    checkpoints, writes = await saver.home(lambda: _read(saver, thread))
    by_checkpoint = defaultdict[tuple[str, str], list[Row]](list)
    for row in writes:
        by_checkpoint[row["checkpoint_ns"], row["checkpoint_id"]].append(row)
    return [
        _superstep(saver, thread, row, by_checkpoint[row["checkpoint_ns"], row["checkpoint_id"]])
        for row in checkpoints
    ]


async def _read(saver: PostgresSaver, thread: str) -> tuple[Sequence[Row], Sequence[Row]]:
    async with saver.reading() as cursor:
        await cursor.execute(_CHECKPOINTS, [thread])
        checkpoints = await cursor.fetchall()
        await cursor.execute(_WRITES, [thread, [*READ, SENT]])
        return checkpoints, await cursor.fetchall()


def _superstep(saver: PostgresSaver, thread: str, row: Row, writes: Sequence[Row]) -> Superstep:
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
