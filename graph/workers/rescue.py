"""Taking up the jobs of workers that have died, as procrastinate advises to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from psycopg.errors import RaiseException

from daruma.graph.workers.engine import (
    ConnectorException,
    Job,
    JobManager,
    Status,
    UniqueViolation,
)

_KEPT_HOURS: Final = 7 * 24
"""How long jobs that failed are kept, to be looked at."""


async def rescue(jobs: JobManager, queue: str, stalled: float) -> None:
    """Queue again what workers had begun that showed no sign of life for ``stalled`` seconds.

    One that was only slow finds its thread taken, or its work done. What failed long ago goes.
    """
    for job in await jobs.get_stalled_jobs(queue=queue, seconds_since_heartbeat=stalled):
        await _queued_again(jobs, job)
    await jobs.delete_old_jobs(
        nb_hours=_KEPT_HOURS,
        queue=queue,
        include_failed=True,
        include_cancelled=True,
        include_aborted=True,
    )


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
