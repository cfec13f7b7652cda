"""The settings files that tasks could write, as a person last agreed to them.

A task whose workspace holds the folder that Daruma is run in can change the rules of the next one.
"""

from typing import Any, Final

from psycopg import AsyncConnection

_FIND: Final = "SELECT digest FROM daruma_settings_seen WHERE folder = %s"
_KEEP: Final = """
INSERT INTO daruma_settings_seen (folder, digest) VALUES (%s, %s)
ON CONFLICT (folder) DO UPDATE SET digest = excluded.digest, seen_at = now()
"""


async def seen(connection: AsyncConnection[Any], folder: str) -> str | None:
    """Return the digest that was agreed to; None for a folder that no task could write into."""
    row = await (await connection.execute(_FIND, [folder])).fetchone()
    return str(row["digest"]) if row else None


async def agree(connection: AsyncConnection[Any], folder: str, digest: str) -> None:
    """Keep what was agreed to."""
    await connection.execute(_KEEP, [folder, digest])
