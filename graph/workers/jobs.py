"""Putting jobs into the queue: of one thread they run one after the other, in their order."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from daruma.graph.storage.database import Database
from daruma.graph.storage.pool import Connection
from daruma.graph.workers.engine import (
    AlreadyEnqueued,
    ConnectorException,
    Job,
    JobManager,
    PsycopgConnector,
)
from daruma.graph.workers.queue_tables import make_queue
from daruma.graph.workers.submission import Submission
from daruma.graph.workers.task_names import CARRY_OUT, EVOLVE, PARK

_BEHIND: Final = -1
"""The priority of timed jobs: one that waits for its time does not stand in its thread's way."""

_LAST: Final = -2
"""The priority of learning from what has ended: what has not ended comes first."""

_WAITING: Final = """
SELECT count(*) AS count FROM procrastinate_jobs
WHERE task_name = %(task)s AND queue_name = %(queue)s AND status = 'todo'
"""


async def queue(database: Database, submission: Submission, name: str) -> None:
    """Put a submission into the queue of that name; a second time changes nothing."""
    job = Job(
        queue=name,
        task_name=CARRY_OUT,
        lock=submission.thread_id,
        queueing_lock=f"{CARRY_OUT} {submission.name}",
        task_kwargs={"submission": submission.to_json()},
    )
    await _put(database, job)


async def park_at(database: Database, thread_id: str, deadline: float, name: str) -> None:
    """Have a thread's open review parked at its deadline, in Unix seconds; asked for once."""
    job = Job(
        queue=name,
        task_name=PARK,
        priority=_BEHIND,
        lock=thread_id,
        queueing_lock=f"{PARK} {thread_id} {deadline}",
        task_kwargs={"thread_id": thread_id},
        scheduled_at=datetime.fromtimestamp(deadline).astimezone(),
    )
    await _put(database, job)


async def evolve_later(
    database: Database, owner: str, key: str, name: str, kept: Mapping[str, Any], most: int
) -> bool:
    """Have a task on record learned from, asked for once; return whether that was queued.

    It is not where ``most`` wait already. Of one owner's, each is done after the other.
    """
    await make_queue(database)
    values = {"task": EVOLVE, "queue": name}

    async def count(connection: Connection) -> int:
        row = await (await connection.execute(_WAITING, values)).fetchone()
        return int(row["count"]) if row else 0

    if await database.transact(count) >= most:
        return False
    job = Job(
        queue=name,
        task_name=EVOLVE,
        priority=_LAST,
        lock=f"{EVOLVE} {owner}",
        queueing_lock=f"{EVOLVE} {owner} {key}",
        task_kwargs={"owner": owner, "key": key, "kept": dict(kept)},
    )
    await _put(database, job)
    return True


async def _put(database: Database, job: Job) -> None:
    async def put(connection: Connection) -> Any:
        try:
            return await JobManager(PsycopgConnector()).defer_job_async(job, connection=connection)
        except ConnectorException as error:  # a lost database is told by what Postgres itself says
            raise error.__cause__ or error from None

    await make_queue(database)
    try:
        await database.transact(put)
    except AlreadyEnqueued:
        return
