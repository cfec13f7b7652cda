"""Taking up the jobs of workers that have died, as procrastinate advises to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from psycopg.errors import RaiseException

from daruma.graph.storage.lifeline import Life
from daruma.graph.workers.engine import (
    ConnectorException,
    Job,
    JobManager,
    Status,
    UniqueViolation,
)

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
    dead = await _of_the_dead(jobs, queue)
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


async def _of_the_dead(jobs: JobManager, queue: str) -> set[int]:
    rows = await jobs.connector.execute_query_all_async(_HELD, queue=queue)
    lives = {row["id"]: Life.of(row["holder"]) for row in rows}
    return {id_ for id_, life in lives.items() if life and life.is_over}


async def _queued_again(jobs: JobManager, job: Job) -> None:
    with _unless_ended():
        try:
            await jobs.retry_job(job)
        except UniqueViolation:  # the same waits in the queue already, behind this one's lock
            await jobs.finish_job(job, Status.ABORTED, delete_job=True)


@contextmanager
def _unless_ended() -> Iterator[None]:
    """Let be what has ended meanwhile, or what another worker was first to queue."""
    try:
        yield
    except ConnectorException as error:
        if not isinstance(error.__cause__, RaiseException):
            raise
