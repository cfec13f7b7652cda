"""The queue in Postgres: its tables, its jobs, and jobs that come back into it."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from procrastinate import BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.schema import SchemaManager
from psycopg import OperationalError
from psycopg.errors import RaiseException
from typing_extensions import override

from daruma.graph.standing import CARRY_OUT, EVOLVE, IS_THERE, PARK
from daruma.graph.storage import Connection, Database, ProcessLife
from daruma.graph.workers._execution import LOG, Submission
from daruma.state.errors import Busy, HoldLost, StorageUnavailable

# --- Procrastinate's own tables, made beside ours when something is queued for the first time.


async def make_queue(database: Database) -> None:
    """Make the tables, one process after the other; in the schema that the connections work in."""

    async def make(connection: Connection) -> None:
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.queue'))")
        row = await (await connection.execute(IS_THERE)).fetchone()
        if not (row and row["there"]):
            await connection.execute(SchemaManager.get_schema())

    (found,) = await database.statement(IS_THERE, {})
    if not found["there"]:
        await database.transact(make)


# --- Putting jobs into the queue: of one thread they run one after the other, in their order.

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
    (waiting,) = await database.statement(_WAITING, {"task": EVOLVE, "queue": name})
    if waiting["count"] >= most:
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


# --- Cancelling what was submitted for a thread.

_OF_A_THREAD: Final = """
SELECT id FROM procrastinate_jobs
WHERE task_name = %s AND lock = %s AND status IN ('todo', 'doing') ORDER BY id DESC
"""


async def cancel_jobs(database: Database, thread_id: str) -> bool:
    """Take a thread's jobs out of the queue, and have the one that runs ended; return if any was.

    The newest goes first, so that none begins meanwhile.
    """
    await make_queue(database)

    async def cancel(connection: Connection) -> bool:
        jobs = JobManager(PsycopgConnector())
        found = await (await connection.execute(_OF_A_THREAD, [CARRY_OUT, thread_id])).fetchall()
        done = [
            await jobs.cancel_job_by_id_async(row["id"], abort=True, connection=connection)
            for row in found
        ]
        return any(done)

    return await database.transact(cancel)


# --- When a job that could not be done comes back into the queue, and when it has failed.

_LATER: Final = (Busy, HoldLost, StorageUnavailable, OperationalError)
"""What says nothing of the job itself: somebody else is at work, or the database is lost."""

_LONGEST: Final = 30.0
"""Seconds between two tries; as long as a lease that nobody keeps alive."""


def is_later(error: BaseException) -> bool:
    """Tell whether a job that ended so is to be tried again."""
    return isinstance(error, (*_LATER, asyncio.CancelledError))


class PuttingOff(BaseRetryStrategy):
    """Puts a job off as often as it takes, each time for twice as long, from ``first`` seconds on.

    One that was cancelled, as its worker is stopped, can be taken up at once.
    """

    def __init__(self, first: float = 1.0) -> None:
        self._first = first

    @override
    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if not is_later(exception):
            return None
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision()
        wait = min(_LONGEST, self._first * 2 ** min(job.attempts, 10))
        return RetryDecision(retry_in={"milliseconds": round(wait * 1000)})


# --- Taking up the jobs of workers that have died, as procrastinate advises to.

_KEPT_HOURS: Final = 7 * 24
"""How long jobs that failed are kept, to be looked at."""


_HELD: Final = """
SELECT job.id, held.holder FROM procrastinate_jobs AS job
JOIN daruma_leases AS held ON held.thread_id = job.lock AND held.holder <> ''
WHERE job.status = 'doing' AND job.queue_name = %(queue)s AND held.taken_at > (
    SELECT max(at) FROM procrastinate_events AS each
    WHERE each.job_id = job.id AND each.type = 'started'
)
"""
"""Jobs whose thread was taken since they were begun, and by whom."""


async def rescue(jobs: JobManager, queue: str, stalled: float) -> None:
    """Queue again what workers had begun that showed no sign of life for ``stalled`` seconds.

    One that was only slow finds its thread taken, or its work done. A process of this host that
    held its job's thread and has surely ended is not waited for. What failed long ago goes.
    """
    for job in await jobs.get_stalled_jobs(queue=queue, seconds_since_heartbeat=stalled):
        await _queued_again(jobs, job)
    rows = await jobs.connector.execute_query_all_async(_HELD, queue=queue)
    lives = {row["id"]: ProcessLife.of(row["holder"]) for row in rows}
    dead = {id_ for id_, life in lives.items() if life and life.is_over}
    for job in await jobs.get_stalled_jobs(queue=queue, seconds_since_heartbeat=0) if dead else ():
        if job.id in dead:
            await _queued_again(jobs, job)
    await jobs.delete_old_jobs(
        nb_hours=_KEPT_HOURS,
        queue=queue,
        include_failed=True,
        include_cancelled=True,
        include_aborted=True,
    )


async def _queued_again(jobs: JobManager, job: Job) -> None:
    if job.task_name == CARRY_OUT:
        LOG.warning(f"thread {job.lock!r}: its worker is gone; it is queued again")
    try:
        try:
            if job.abort_requested:  # its worker died before it could end it
                await jobs.finish_job(job, Status.ABORTED, delete_job=True)
            else:
                await jobs.retry_job(job)
        except UniqueViolation:  # the same waits in the queue already, behind this one's lock
            await jobs.finish_job(job, Status.ABORTED, delete_job=True)
    except ConnectorException as error:
        if not isinstance(error.__cause__, RaiseException):
            raise  # else it has ended meanwhile, or another worker was first to queue it
