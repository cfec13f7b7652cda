"""Reading supersteps out of Postgres: two queries, whatever the length of a thread."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from daruma.graph.pictures.superstep import READ, SENT, Superstep, Written
from daruma.graph.storage.packed_writes import CHANNEL as PACKED
from daruma.graph.storage.packed_writes import Write, writes_in
from daruma.graph.storage.rows import open_write
from daruma.graph.storage.saver import PostgresSaver
from daruma.graph.storage.sealing import typed

_CHECKPOINTS: Final = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint ->> 'ts' AS ts,
    checkpoint -> 'updated_channels' AS updated, metadata ->> 'source' AS source,
    metadata ->> 'step' AS step, metadata -> 'parents' ->> '' AS root
FROM checkpoints WHERE thread_id = %s ORDER BY checkpoint_id
"""
_WRITES: Final = """
SELECT checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type,
    CASE WHEN channel = %s THEN NULL ELSE blob END AS blob
FROM checkpoint_writes WHERE thread_id = %s AND channel = ANY(%s)
ORDER BY checkpoint_id, task_path, task_id, idx
"""
_NOTHING: Final = "null"

Row = Mapping[str, Any]


def supersteps_in(saver: PostgresSaver, thread: str) -> list[Superstep]:
    """Return all supersteps of a thread, those of its members too, oldest first.

    Raises :class:`~daruma.state.errors.DamagedState` for a write that can not be read.
    """
    return _supersteps(saver, thread, *saver.home_waiting(lambda: _read(saver, thread)))


async def asupersteps_in(saver: PostgresSaver, thread: str) -> list[Superstep]:
    """Do the same, on any event loop."""
    return _supersteps(saver, thread, *await saver.home(lambda: _read(saver, thread)))


async def _read(saver: PostgresSaver, thread: str) -> tuple[Sequence[Row], Sequence[Row]]:
    async with saver._cursor() as cursor:
        await cursor.execute(_CHECKPOINTS, [thread])
        checkpoints = await cursor.fetchall()
        await cursor.execute(_WRITES, [SENT, thread, [*READ, SENT, PACKED]])
        return checkpoints, await cursor.fetchall()


def _supersteps(
    saver: PostgresSaver, thread: str, checkpoints: Sequence[Row], writes: Sequence[Row]
) -> list[Superstep]:
    by_checkpoint: dict[tuple[str, str], list[Row]] = {}
    for row in writes:
        by_checkpoint.setdefault((row["checkpoint_ns"], row["checkpoint_id"]), []).append(row)
    return [
        _superstep(
            saver, thread, row, by_checkpoint.get((row["checkpoint_ns"], row["checkpoint_id"]), [])
        )
        for row in checkpoints
    ]


def _superstep(saver: PostgresSaver, thread: str, row: Row, writes: Sequence[Row]) -> Superstep:
    alone = [each for each in writes if each["channel"] == SENT]
    found = [
        (each["task_id"], write)
        for each in writes
        if each["channel"] != SENT
        for write in _opened(saver, thread, each)
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
        sent=len(alone) + sum(write.channel == SENT for _, write in found),
        written=tuple(
            Written(task, write.channel, value)
            for task, write in found
            if write.channel in READ and (value := _value(saver, write)) is not None
        ),
    )


def _opened(saver: PostgresSaver, thread: str, row: Row) -> Iterable[Write]:
    place = [thread, *(str(row[key]) for key in _PLACE)]
    kind, payload, _ = open_write(typed(row["type"], row["blob"]), place, saver.sealing)
    return writes_in((thread, *(row[key] for key in _PLACE), kind, payload))


def _value(saver: PostgresSaver, write: Write) -> Any:
    if write.kind == _NOTHING:
        return None
    return saver.serde.loads_typed((write.kind, write.payload))


_PLACE: Final = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel")
