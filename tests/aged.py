"""Threads that are years old, and whole."""

from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from daruma.graph.storage._rows import NAME, marked
from daruma.graph.storage._sealing import Checked

ROWS = "SELECT checkpoint_ns, checkpoint_id, checkpoint, metadata FROM daruma_checkpoints"
LONG_AGO = {"ts": "2020-01-01T00:00:00+00:00"}


def age(connection: psycopg.Connection[Any], thread: str) -> None:
    """Let a thread's checkpoints have been written long ago."""
    rows = connection.execute(f"{ROWS} WHERE thread_id = %s", [thread]).fetchall()
    for ns, id_, checkpoint, metadata in rows:
        aged = checkpoint | LONG_AGO
        aged = marked(aged, metadata, checkpoint[NAME], (thread, ns, id_), Checked())
        connection.execute(
            "UPDATE daruma_checkpoints SET checkpoint = %s"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
            [Jsonb(aged), thread, ns, id_],
        )
