"""The queue in Postgres: its tables, its jobs, and jobs that come back into it."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Job
from procrastinate.manager import JobManager
from psycopg import OperationalError
from tests.fault_proxy import Fate, FaultProxy, fault_proxy, once, passing

from daruma.graph.requests import RequestRefused
from daruma.graph.storage import Postgres, aopen_postgres, open_postgres
from daruma.graph.sync import run
from daruma.graph.workers._execution import Submission
from daruma.graph.workers._queue import PuttingOff, is_later, queue, rescue
from daruma.state.errors import HoldLost, StorageUnavailable, ThreadBusy, WorkspaceBusy

# --- A submission comes into the queue once, over whatever connections (DU-04, DU-07).


def put(pg: Postgres, name: str) -> None:
    database = pg.checkpointer.database
    run(queue(database, Submission("t", None, name=name), "q"), loop=database.loop)


def count_of(pg: Postgres, proxy: FaultProxy) -> int:
    """How many messages it takes to queue a submission; the tables are made before."""
    put(pg, "first")
    proxy.count_from_here(passing)
    put(pg, "counted")
    return proxy.messages


@pytest.mark.long
@pytest.mark.parametrize("fate", ["cut before", "cut after"])
def test_a_submission_is_queued_once_whichever_message_is_lost(
    postgres_url: str, fate: Fate
) -> None:
    """What the queue makes of a lost connection is ridden out as any other; for every message."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as pg:
        count = count_of(pg, proxy)
        for number in range(count):
            proxy.count_from_here(once(number, fate))
            put(pg, f"s{number}")
            proxy.mend()

    with psycopg.connect(postgres_url) as connection:
        names = connection.execute("SELECT args #>> '{submission,name}' FROM procrastinate_jobs")
        queued = sorted(name for (name,) in names)
    assert queued == sorted(["first", "counted", *(f"s{number}" for number in range(count))])


# --- The jobs of dead workers are taken up by whichever worker looks first (DU-07).


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


# --- Which jobs come back into the queue, and when.


def seconds(error: BaseException, attempts: int) -> float | None:
    """How long a job waits; None for one that has failed."""
    job = Job(queue="q", lock="t", queueing_lock=None, task_name="x", attempts=attempts)
    now = datetime.now(UTC)
    decision = PuttingOff(first=1.0).get_retry_decision(exception=error, job=job)
    if decision is None:
        return None
    return round((decision.retry_at - now).total_seconds(), 1) if decision.retry_at else 0.0


@pytest.mark.parametrize(
    "error",
    [
        ThreadBusy("x"),
        WorkspaceBusy("x"),
        HoldLost("t"),
        StorageUnavailable("x"),
        OperationalError(),
    ],
)
@pytest.mark.parametrize(("attempts", "wait"), [(0, 1), (1, 2), (4, 16), (5, 30), (10**6, 30)])
def test_what_says_nothing_of_the_job_puts_it_off(
    error: Exception, attempts: int, wait: float
) -> None:
    """For twice as long each time, half a minute at most, and as often as it takes."""
    assert seconds(error, attempts) == wait
    assert is_later(error)


def test_a_job_that_was_cancelled_can_be_taken_up_at_once() -> None:
    """Its worker is being stopped; another one may be free."""
    assert seconds(asyncio.CancelledError(), 3) == 0


@pytest.mark.parametrize("error", [RequestRefused("no"), ValueError("a bug"), KeyboardInterrupt()])
def test_anything_else_is_a_failure(error: BaseException) -> None:
    """It would end the same way again."""
    assert seconds(error, 0) is None
    assert not is_later(error)
