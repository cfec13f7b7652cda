"""The jobs of dead workers are taken up by whichever worker looks first (DU-07)."""

from collections.abc import Iterable
from typing import Any

from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.workers.engine import App, Job, JobManager, PsycopgConnector
from daruma.graph.workers.queue import queue, rescue
from daruma.graph.workers.submission import Submission


class SecondToLook(JobManager):
    """That of a worker which sees what is stalled just before another one queues it again."""

    async def get_stalled_jobs(self, *given: Any, **named: Any) -> Iterable[Job]:
        found = [*await super().get_stalled_jobs(*given, **named)]
        await rescue(JobManager(self.connector), "q", 0.0)
        return found


STALLED = "UPDATE procrastinate_jobs SET status = 'doing'"
JOBS = "SELECT status, attempts FROM procrastinate_jobs"


async def test_two_workers_that_find_the_same_stalled_job_queue_it_once(postgres_url: str) -> None:
    """Who comes second goes on to its own work: a worker that starts then does not fall over."""
    async with aopen_postgres(postgres_url) as pg:
        await queue(pg.checkpointer.database, Submission("t", None), "q")
        async with App(connector=PsycopgConnector(conninfo=postgres_url)).open_async() as app:
            await app.connector.execute_query_async(STALLED)

            await rescue(SecondToLook(app.connector), "q", 0.0)

            rows = await app.connector.execute_query_all_async(JOBS)
    assert rows == [{"status": "todo", "attempts": 1}]


async def test_a_stalled_job_that_is_queued_once_more_already_makes_way(postgres_url: str) -> None:
    """Its twin does the same; no worker falls over it, and its thread is not kept locked by it."""
    async with aopen_postgres(postgres_url) as pg:
        database, submission = pg.checkpointer.database, Submission("t", None)
        await queue(database, submission, "q")
        async with App(connector=PsycopgConnector(conninfo=postgres_url)).open_async() as app:
            await app.connector.execute_query_async(STALLED)
            await queue(database, submission, "q")

            await rescue(app.job_manager, "q", 0.0)

            rows = await app.connector.execute_query_all_async(JOBS)
    assert rows == [{"status": "todo", "attempts": 0}]
