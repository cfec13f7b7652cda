"""Threads that are years old, and whole."""

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from daruma.graph.storage._manifest import remade
from daruma.graph.storage._sealing import Checked, Typed

ROWS = "SELECT checkpoint_ns, checkpoint_id, checkpoint, metadata FROM checkpoints"
LONG_AGO = {"ts": "2020-01-01T00:00:00+00:00"}


def age(connection: psycopg.Connection[Any], thread: str) -> None:
    """Let a thread's checkpoints have been written long ago."""
    rows = connection.execute(f"{ROWS} WHERE thread_id = %s", [thread]).fetchall()
    for ns, id_, checkpoint, metadata in rows:
        aged = remade(checkpoint | LONG_AGO, metadata, (thread, ns, id_), Checked())
        connection.execute(
            "UPDATE checkpoints SET checkpoint = %s"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
            [Jsonb(aged), thread, ns, id_],
        )


def store_as(
    connection: psycopg.Connection[DictRow], table: str, form: Callable[[Typed], Typed]
) -> int:
    """Have values as an older program would have stored them; return how many there are."""
    read = f"SELECT ctid::text AS at, type, blob FROM {table}"  # noqa: S608 - constants
    write = f"UPDATE {table} SET type = %s, blob = %s WHERE ctid = %s::tid"  # noqa: S608 - too
    found = connection.execute(read.encode()).fetchall()
    for row in found:
        value = form(Checked().open((row["type"], row["blob"]), ()))
        connection.execute(write.encode(), [*value, row["at"]])
    return len(found)
