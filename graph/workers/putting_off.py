"""When a job that could not be done comes back into the queue, and when it has failed."""

import asyncio
from typing import Final

from psycopg import OperationalError
from typing_extensions import override

from daruma.graph.workers.engine import BaseRetryStrategy, Job, RetryDecision
from daruma.state.errors import Busy, HoldLost, StorageUnavailable

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
