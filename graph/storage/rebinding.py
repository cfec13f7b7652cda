"""Copying the rows of a sealed thread: each value is opened, and sealed in its new place.

Where values are not hidden they are bound to no thread, and a copy by the database alone will do.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from psycopg import sql
from psycopg.types.json import Jsonb

from daruma.graph.storage.damage import damage_at
from daruma.graph.storage.manifest import checked, remade
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.sealing import Place, Sealing

Row = Mapping[str, Any]

_AT_ONCE: Final = 100
"""Rows that are held in memory."""


class _Sealed(NamedTuple):
    """Where a table has the kind of a value and its bytes, and which place they are sealed in."""

    kind: str
    payload: str
    place: Callable[[Row], Place]


def _columns(*names: str) -> Callable[[Row], Place]:
    return lambda row: [str(row[name]) for name in names]


_WRITE: Final = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel")
_SEALED: Final = {
    "checkpoint_blobs": _Sealed("type", "blob", _columns("checkpoint_ns", "channel", "version")),
    "checkpoint_writes": _Sealed("type", "blob", _columns(*_WRITE)),
    "daruma_replies": _Sealed("kind", "reply", lambda row: ("reply", row["interrupt_id"])),
    "daruma_effects": _Sealed("kind", "outcome", lambda row: ("effect", row["key"])),
    "daruma_outputs": _Sealed("kind", "output", lambda row: ("output", row["id"])),
}
"""By table; each place begins with the thread."""


async def copy_sealed(
    connection: Connection, table: str, source: str, target: str, sealing: Sealing
) -> None:
    """Copy a thread's rows of one table, within a transaction; those that are there stay.

    Raises :class:`~daruma.state.errors.DamagedState` for what is damaged.
    """
    found = sql.SQL("SELECT * FROM {} WHERE thread_id = %s").format(sql.Identifier(table))
    async with connection.cursor(name="source") as cursor:
        await cursor.execute(found, [source])
        while rows := await cursor.fetchmany(_AT_ONCE):
            copies = [_copy(table, row, target, sealing) for row in rows]
            async with connection.cursor() as into:
                await into.executemany(_insertion(table, rows[0]), copies)


def _insertion(table: str, row: Row) -> sql.Composed:
    return sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(map(sql.Placeholder, row)),
    )


def _copy(table: str, row: Row, target: str, sealing: Sealing) -> dict[str, Any]:
    copy = {**row, "thread_id": target}
    own = _SEALED.get(table)
    return copy | (_values(own, row, target, sealing) if own else _noted(row, target, sealing))


def _values(own: _Sealed, row: Row, target: str, sealing: Sealing) -> dict[str, Any]:
    if row[own.payload] is None:
        return {}
    place = own.place(row)
    value = sealing.open((row[own.kind], row[own.payload]), (row["thread_id"], *place))
    kind, payload = sealing.seal(value, (target, *place))
    return {own.kind: kind, own.payload: payload}


def _noted(row: Row, target: str, sealing: Sealing) -> dict[str, Any]:
    """Return the copy of what a checkpoint's row holds in clear, beneath a mark of its own."""
    checkpoint, metadata = row["checkpoint"], row["metadata"]
    within = row["checkpoint_ns"], row["checkpoint_id"]
    with damage_at(row["thread_id"], *within):
        checked(checkpoint, metadata, within[1], (row["thread_id"], *within), sealing)
        copied = remade(checkpoint, metadata, (target, *within), sealing)
    return {"checkpoint": Jsonb(copied), "metadata": Jsonb(metadata)}
