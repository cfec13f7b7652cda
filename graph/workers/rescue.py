"""Taking up the jobs of workers that have died, as procrastinate advises to."""

from typing import Final

from daruma.graph.workers.engine import JobManager

_KEPT_HOURS: Final = 7 * 24
"""How long jobs that failed are kept, to be looked at."""


async def rescue(jobs: JobManager, queue: str, stalled: float) -> None:
    """Queue again what workers had begun that showed no sign of life for ``stalled`` seconds.

    One that was only slow finds its thread taken, or its work done. What failed long ago goes.
    """
    for job in await jobs.get_stalled_jobs(queue=queue, seconds_since_heartbeat=stalled):
        await jobs.retry_job(job)
    await jobs.delete_old_jobs(
        nb_hours=_KEPT_HOURS,
        queue=queue,
        include_failed=True,
        include_cancelled=True,
        include_aborted=True,
    )
