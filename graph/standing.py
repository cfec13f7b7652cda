"""Where threads stand at this moment, and what is going on with them in whichever process."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT

from daruma.graph.storage import Connection, Database, PostgresSaver, ProcessLife, is_held_here
from daruma.state.result import TaskResult

# --- What jobs are called in the queue; known also where procrastinate is not installed.

CARRY_OUT: Final = "daruma.carry_out"
"""Runs a thread with what was submitted for it."""

PARK: Final = "daruma.park"
"""Parks a thread's review at its deadline."""

EVOLVE: Final = "daruma.evolve"
"""Learns from a task that has ended."""

IS_THERE: Final = """
SELECT EXISTS (
    SELECT FROM pg_class WHERE relname = 'procrastinate_jobs' AND pg_table_is_visible(oid)
) AS there
"""
"""Tells whether anything was ever queued in a database.

``to_regclass`` would still say no to one who has asked before and then waited for the maker's lock.
"""


# --- What is going on with threads at this moment, in whichever process: running, or queued for it.

_RUNNING: Final = """
SELECT thread_id, holder, taken_at FROM daruma_leases
WHERE expires_at > now() AND holder <> '' AND (%(thread)s::text IS NULL OR thread_id = %(thread)s)
"""
_QUEUED: Final = """
SELECT lock AS thread_id, status, args,
    (SELECT max(at) FROM procrastinate_events AS each WHERE each.job_id = job.id) AS since
FROM procrastinate_jobs AS job
WHERE task_name = %(task)s AND status IN ('todo', 'doing', 'failed')
    AND (%(thread)s::text IS NULL OR lock = %(thread)s)
    AND (status <> 'failed' OR NOT EXISTS (
        SELECT FROM daruma_checkpoints AS newer
        WHERE newer.thread_id = job.lock AND newer.checkpoint_ns = ''
            AND newer.checkpoint_id > job.args ->> 'left_at'
    ))
    AND (status = 'failed' OR priority >= 0 AND NOT EXISTS (
        SELECT FROM daruma_events AS told
        WHERE told.thread_id = job.lock AND told.run = job.args #>> '{submission,name}'
            AND told.is_last
    ))
ORDER BY id
"""
"""A job that has told its end is done, though it was not put away yet; one below 0 only waits. One
that failed says nothing of a thread that has gone on since (DU-07).
"""

_NONE: Final = "SELECT WHERE false"


@dataclass(frozen=True)
class Standing:
    """A thread that is ``running``, ``queued``, or whose newest job ``failed``, and since when.

    ``submitted`` is what is queued, as JSON; ``error`` is the line that says why a job failed.
    """

    thread_id: str
    what: Literal["running", "queued", "failed"]
    since: datetime
    submitted: dict[str, Any] | None = None
    error: str = ""

    @property
    def request(self) -> str:
        """What was asked for, in words."""
        asked = (self.submitted or {}).get("request")
        content = asked["messages"][-1]["data"]["content"] if asked else ""
        return content if isinstance(content, str) else ""

    @property
    def is_busy(self) -> bool:
        """Whether somebody works on the thread, or will."""
        return self.what != "failed"


async def standing_of(database: Database, thread_id: str) -> Standing | None:
    """Return what goes on with one thread; None where nobody works on it, or is to."""
    found = (await standings(database, thread_id)).get(thread_id)
    return found if found and found.is_busy else None


async def is_worked_on(checkpointer: Any, thread_id: str) -> bool:
    """Whether somebody runs a thread or is to; without Postgres, somebody in this process."""
    if not isinstance(checkpointer, PostgresSaver):
        return is_held_here(checkpointer, thread_id)
    return await standing_of(checkpointer.database, thread_id) is not None


async def standings(database: Database, thread_id: str | None = None) -> dict[str, Standing]:
    """Return what goes on with all threads, or with one, by their names."""

    async def look(connection: Connection) -> dict[str, Standing]:
        values = {"thread": thread_id, "task": CARRY_OUT}
        is_there = await (await connection.execute(IS_THERE)).fetchone()
        queued = _QUEUED if is_there and is_there["there"] else _NONE
        found = [
            Standing(
                row["thread_id"],
                "failed" if row["status"] == "failed" else "queued",
                row["since"],
                row["args"]["submission"],
                row["args"].get("error", ""),
            )
            for row in await (await connection.execute(queued, values)).fetchall()
        ]
        running = await (await connection.execute(_RUNNING, values)).fetchall()
        asked = {each.thread_id: each.submitted for each in reversed(found) if each.is_busy}
        for row in running:  # what was asked of it stands nowhere else before its first step
            name, life = row["thread_id"], ProcessLife.of(row["holder"])
            if life is None or not life.is_over:
                found.append(Standing(name, "running", row["taken_at"], asked.get(name)))
        # The last one of a thread counts: who runs it before what is queued, and what failed.
        found.sort(key=lambda each: (each.is_busy, each.what == "running"))
        return {each.thread_id: each for each in found}

    return await database.transact(look)


# --- Where a thread stands, read off its newest checkpoint as LangGraph does, without its engine.

_CONTROL: Final = frozenset({INTERRUPT, "__error__", "__error_source_node__", "__resume__"})
"""What a task writes that has not come to its end; one that has writes something else, too."""


def read_pending(found: CheckpointTuple) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the open questions of a checkpoint, and what its finished tasks wrote, by channel."""
    written: dict[str, dict[str, Any]] = {}
    asked: dict[str, list[Any]] = {}
    for task, channel, value in found.pending_writes or ():
        if channel == INTERRUPT:
            asked.setdefault(task, []).extend(value)
        elif channel not in _CONTROL:
            written.setdefault(task, {})[channel] = value
    waiting = (questions for task, questions in asked.items() if task not in written)
    return [each for questions in waiting for each in questions], [*written.values()]


def status_of(result: TaskResult | None, questions: Iterable[Any]) -> str:
    """Return a result's status, ``held``, ``waiting``, or ``unfinished``.

    A thread is held after a rollback that failed, until somebody decides.
    """
    values = [each.value for each in questions]
    for value in values:
        given = value.get("options") if isinstance(value, Mapping) else ()
        options = {*map(str, given)} if isinstance(given, list | tuple) else set[str]()
        if {"retry", "keep"} <= options <= {"retry", "restore", "keep"}:
            return "held"
    if result:
        return result.status
    return "waiting" if values else "unfinished"
