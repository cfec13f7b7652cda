"""Deleting old threads, with all that belongs to them, and giving their space back (DU-08)."""

import hashlib
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, get_args
from uuid import UUID

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from daruma.graph.storage._database import GOING_WITH_A_THREAD, answers_within
from daruma.graph.storage._saver import TABLES, PostgresSaver, channel_values, delete_rows, thin
from daruma.state.data_dir import data_dir
from daruma.state.errors import DamagedState, ThreadBusy
from daruma.state.plan import Plan
from daruma.state.task import Status
from daruma.tools.threads import in_thread

# --- What a thread has outside of the database: snapshots, edit histories, worktrees.
#
# All of it lies in Daruma's own folder on this host, and none of it in a workspace. It goes by the
# thread's name, which a restored copy of its database has, too.

_DATABASE: Final = """
SELECT system_identifier || '.' || oid AS name FROM pg_control_system(), pg_database
WHERE datname = current_database()
"""
_UNKNOWN: Final = "unknown"  # where a role may not ask for it


async def note_of(saver: PostgresSaver, thread: str, workspace: str) -> Path:
    """Return the file that notes here that a thread of this database has worked in a workspace."""
    name = _UNKNOWN
    with suppress(InsufficientPrivilege):
        name = (await saver.database.statement(_DATABASE, ()))[0]["name"]
    key = f"{await in_thread(os.path.realpath, workspace)}\0{thread}"
    return data_dir() / "threads" / name / hashlib.sha256(os.fsencode(key)).hexdigest()


async def forget_belongings(thread: str, notes: Mapping[str, Path], plan: Plan | None) -> None:
    """Delete what a thread has on this host; what is not there is no error.

    In workspaces of which others have a note, or nobody has, it stays: another database may need it
    (DU-08). ``plan`` is the newest one: members may have left worktrees of its phases. Raises
    :class:`~daruma.tools.snapshots.SnapshotUnavailable` and
    :class:`~daruma.tools.team.WorktreeUnavailable` for what can not be deleted.
    """
    from daruma.tools.files import edit_folder  # not read to list threads (FA-13)
    from daruma.tools.snapshots import delete_snapshots
    from daruma.tools.team import remove_worktree, worktree_folder

    phases = [(plan.id, phase.id) for phase in plan.phases] if plan else []
    for workspace, note in ((Path(each), note) for each, note in notes.items()):
        users = [each.parent.name for each in note.parents[1].glob(f"*/{note.name}")]
        if users == [note.parent.name] != [_UNKNOWN]:
            folders = [worktree_folder(workspace, f"{thread}\0{id_}", of) for id_, of in phases]
            await in_thread(delete_snapshots, workspace, thread)
            for place in (workspace, *folders):
                await in_thread(shutil.rmtree, edit_folder(place, thread), ignore_errors=True)
            for folder in folders:
                await remove_worktree(folder)
        with suppress(OSError):
            note.unlink()


# --- When a checkpoint was written, also where its row is damaged.

_GREGORIAN: Final = datetime(1582, 10, 15, tzinfo=UTC)
"""The day from which a UUID counts its tenths of a microsecond."""


def written_at(checkpoint_id: str, noted: str | None) -> datetime:
    """Return the time that a checkpoint notes, else that of its id; both are those of its writer.

    The start of 1970 for one that tells neither.
    """
    with suppress(ValueError):
        return datetime.fromisoformat(noted or "").astimezone()
    with suppress(ValueError):
        number = UUID(checkpoint_id).int
        ticks = (number >> 80) << 12 | (number >> 64) & 0xFFF
        return (_GREGORIAN + timedelta(microseconds=ticks // 10)).astimezone()
    return datetime.fromtimestamp(0, UTC).astimezone()


# --- The space that threads take in the database, and giving it back (DU-08).

_SIZE: Final = """
SELECT (SELECT coalesce(sum(pg_column_size(blob) + 100), 0)
        FROM daruma_blobs WHERE thread_id = %(thread)s)
    + (SELECT coalesce(sum(pg_column_size(blob) + 100), 0)
       FROM daruma_writes WHERE thread_id = %(thread)s)
    + (SELECT coalesce(sum(pg_column_size(checkpoint) + pg_column_size(metadata) + 200), 0)
       FROM daruma_checkpoints WHERE thread_id = %(thread)s)
    + (SELECT coalesce(sum(pg_column_size(output) + 100), 0)
       FROM daruma_outputs WHERE thread_id = %(thread)s) AS size
"""
_TOTAL: Final = """
SELECT sum(pg_total_relation_size(name::regclass)) AS size FROM unnest(%s::text[]) AS name
"""

_VACUUM_SECONDS: Final = 3600.0
"""For one table: a full vacuum writes all of it anew, which takes minutes where there is much."""


async def total(saver: PostgresSaver) -> int:
    """Return the bytes of all tables that hold threads, as they lie on the disk."""
    (row,) = await saver.database.statement(_TOTAL, [list(TABLES)])
    return int(row["size"])


async def vacuum(saver: PostgresSaver, *, full: bool = False) -> None:
    """Make the space of deleted rows usable again; ``full`` gives it back to the disk.

    A full one copies each table and lets nobody read or write it meanwhile. A role that may not do
    it leaves it to the server's own autovacuum.
    """
    how = sql.SQL("VACUUM (FULL, ANALYZE) {}" if full else "VACUUM (ANALYZE) {}")

    async def clean() -> None:
        with answers_within(_VACUUM_SECONDS):
            async with saver.database.pool.connection() as connection:
                for table in (*TABLES, *GOING_WITH_A_THREAD):
                    await connection.execute(how.format(sql.Identifier(table)))

    await saver.home(clean)


# --- Deleting old threads, with all that belongs to them, and giving their space back (DU-08).
#
# A thread that is being run is never touched. One that waits for a person, or that has unfinished
# work, goes only where that is asked for.

OPEN: Final = frozenset({"waiting", "parked", "held", "unfinished", "running"})
"""Where a thread stands whose task has not come to its end."""

PRUNABLE: Final = (OPEN | {"damaged", *get_args(Status)}) - {"running"}
"""Where a thread can stand that may be pruned."""

Standing = str
"""``running``, ``waiting``, ``unfinished``, ``damaged``, or the status of the newest result."""

_NEWEST: Final = """
SELECT thread_id, checkpoint_id, checkpoint ->> 'ts' AS ts,
    EXISTS (SELECT FROM daruma_leases held
            WHERE held.thread_id = newest.thread_id AND held.expires_at > now()) AS running
FROM (
    SELECT DISTINCT ON (thread_id) thread_id, checkpoint_id, checkpoint
    FROM daruma_checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id, checkpoint_id DESC
) AS newest
ORDER BY checkpoint_id
"""


@dataclass(frozen=True)
class OldThread:
    """A thread that nobody wrote on for long: where it stands, and about how many bytes it has."""

    thread_id: str
    standing: Standing
    updated_at: datetime
    size: int


@dataclass(frozen=True)
class Pruned:
    """What became of old threads; ``busy`` were run by then. Bytes are those of all threads."""

    threads: tuple[str, ...]
    busy: tuple[str, ...]
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class Wanted:
    """Which threads go: untouched for so many seconds, and of these standings; None: all ended."""

    older_than: float
    standings: Collection[Standing] | None = None
    unfinished: bool = False

    def __contains__(self, standing: Standing) -> bool:
        if standing == "running" or (standing in OPEN and not self.unfinished):
            return False
        return self.standings is None or standing in self.standings


async def old_threads(saver: PostgresSaver, wanted: Wanted) -> list[OldThread]:
    """Return the threads that would go, the oldest first."""
    found = []
    latest = datetime.now().astimezone() - timedelta(seconds=wanted.older_than)
    for row in await saver.database.statement(_NEWEST, {}):
        updated_at = written_at(row["checkpoint_id"], row["ts"])
        if updated_at > latest:
            continue
        newest = "running" if row["running"] else await _newest(saver, row["thread_id"])
        standing = _standing_at(newest)
        if standing in wanted:
            (of_it,) = await saver.database.statement(_SIZE, {"thread": row["thread_id"]})
            found.append(OldThread(row["thread_id"], standing, updated_at, int(of_it["size"])))
    return found


async def prune(
    saver: PostgresSaver,
    threads: Sequence[OldThread],
    *,
    wanted: Wanted,
    keep_history: bool = False,
    full: bool = False,
) -> Pruned:
    """Delete threads, or with ``keep_history`` what came before their newest checkpoint.

    Each is held meanwhile, and looked at once more: one that somebody went on with stays. What lies
    outside of the database goes first, so that a crash leaves nothing that nobody knows of. At the
    end the space is given back, see :func:`~daruma.graph.storage._pruning.vacuum`.
    """
    before = await total(saver)
    gone, busy = list[str](), list[str]()
    for thread in threads:
        try:
            async with saver.holding(thread.thread_id) as own:
                if await _unchanged(own, thread, wanted):
                    await _remove(own, thread.thread_id, keep_history=keep_history)
                    gone.append(thread.thread_id)
                else:
                    busy.append(thread.thread_id)
        except ThreadBusy:
            busy.append(thread.thread_id)
    if gone:
        await vacuum(saver, full=full)
    return Pruned(tuple(gone), tuple(busy), before, await total(saver))


async def _remove(own: PostgresSaver, thread_id: str, *, keep_history: bool) -> None:
    if keep_history:
        await thin(own, thread_id)
        return
    found = await _newest(own, thread_id)
    if isinstance(found, CheckpointTuple):
        plan = found.checkpoint["channel_values"].get("plan")
        await forget_belongings(thread_id, await _workspaces(own, found), plan)
    await own.transact(lambda connection: delete_rows(connection, thread_id))


async def _unchanged(own: PostgresSaver, thread: OldThread, wanted: Wanted) -> bool:
    found = await _newest(own, thread.thread_id)
    if not isinstance(found, CheckpointTuple):
        return found == "damaged"
    at = datetime.fromisoformat(found.checkpoint["ts"])
    return at == thread.updated_at and _standing_at(found) in wanted


async def _newest(
    saver: PostgresSaver, thread_id: str
) -> CheckpointTuple | Literal["damaged", "unfinished"]:
    named = {"thread_id": thread_id, "checkpoint_ns": ""}
    try:
        return await saver.aget_tuple({"configurable": named}) or "unfinished"
    except DamagedState:
        return "damaged"


def _standing_at(found: CheckpointTuple | Standing) -> Standing:
    if isinstance(found, Standing):
        return found
    if any(channel == INTERRUPT for _, channel, _ in found.pending_writes or ()):
        return "waiting"
    result = found.checkpoint["channel_values"].get("result")
    return str(getattr(result, "status", "unfinished"))


async def _workspaces(saver: PostgresSaver, found: CheckpointTuple) -> Mapping[str, Path]:
    """Return the workspaces that a thread worked in, each with this database's note of that."""
    values = found.checkpoint["channel_values"]
    savepoints = values.get("savepoints")
    if savepoints is None and "savepoints" in found.checkpoint["channel_versions"]:
        savepoints = (await channel_values(saver, found, ["savepoints"]))["savepoints"]
    task = values.get("task")
    listed = getattr(savepoints, "value", savepoints) or ()
    names = {each.workspace for each in (*listed, *([task] if task else []))} - {None}
    thread = found.config["configurable"]["thread_id"]
    return {each: await note_of(saver, thread, each) for each in names}
