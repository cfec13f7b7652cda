"""The tables in the database (``schema.sql``), and making them, whoever else is making them."""

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable

from daruma.state.errors import OtherFormat

FORMAT: Final = 13
"""Counts changes of what is stored: a database of another format is refused, and left as it is."""

OF_A_THREAD: Final = ("daruma_replies", "daruma_questions", "daruma_effects", "daruma_outputs")
"""The tables whose rows belong to a thread, by ``thread_id``, and are deleted with it.

The lease is not among them: its token must not begin anew.
"""

GOING_WITH_A_THREAD: Final = ("daruma_events", "daruma_steering")
"""Deleted with it too; a copy has none of them: it told nothing, and was told nothing."""

_OTHER: Final = (
    "the database holds what another version of Daruma stored, which this one does not read "
    f"(its format is {FORMAT}): set DARUMA_POSTGRES_URL to an empty database, or remove the old "
    "one if nothing in it is needed (the embedded server's folder is in `daruma doctor`)"
)


async def make_tables(connection: AsyncConnection[Any]) -> None:
    """Make the tables in one transaction, one process after the other.

    The connection is in autocommit mode. A role that may not create tables is welcome when there is
    nothing to do. Raises :class:`~daruma.state.errors.OtherFormat`, and has then changed nothing.
    """
    if await _are_made(connection):
        return
    script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.tables'))")
        await connection.execute(script.encode(), prepare=False)
        known = "INSERT INTO daruma_version VALUES (%s) ON CONFLICT DO NOTHING"
        await connection.execute(known, [FORMAT])


async def _are_made(connection: AsyncConnection[Any]) -> bool:
    try:
        found = await (await connection.execute("SELECT v FROM daruma_version")).fetchall()
    except UndefinedTable:
        return False
    versions = [row["v"] if isinstance(row, dict) else row[0] for row in found]
    if any(each != FORMAT for each in versions):
        raise OtherFormat(_OTHER)
    return bool(versions)
