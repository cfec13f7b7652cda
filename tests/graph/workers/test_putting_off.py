"""Which jobs come back into the queue, and when."""

import asyncio
from datetime import UTC, datetime

import pytest
from procrastinate.jobs import Job
from psycopg import OperationalError

from daruma.graph.requests import RequestRefused
from daruma.graph.workers.queue import PuttingOff, is_later
from daruma.state.errors import HoldLost, StorageUnavailable, ThreadBusy, WorkspaceBusy


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
