"""What we use of procrastinate, a task queue in Postgres; or one line that says how to get it.

Locks, timed jobs, signs of life, and what becomes of a dead worker's jobs are all its own.
"""

from daruma.state.errors import DarumaError


class EngineMissing(DarumaError, ImportError):
    """Raised when procrastinate is not installed."""


try:
    from procrastinate import (
        App,
        BaseRetryStrategy,
        Blueprint,
        JobContext,
        PsycopgConnector,
        RetryDecision,
    )
    from procrastinate.exceptions import (
        AlreadyEnqueued,
        ConnectorException,
        JobAborted,
        UniqueViolation,
    )
    from procrastinate.job_context import AbortReason
    from procrastinate.jobs import Job, Status
    from procrastinate.manager import JobManager
    from procrastinate.schema import SchemaManager
    from procrastinate.worker import Worker
except ImportError as error:
    raise EngineMissing("workers need procrastinate: pip install 'daruma-agent[worker]'") from error

__all__ = [
    "AbortReason",
    "AlreadyEnqueued",
    "App",
    "BaseRetryStrategy",
    "Blueprint",
    "ConnectorException",
    "Job",
    "JobAborted",
    "JobContext",
    "JobManager",
    "PsycopgConnector",
    "RetryDecision",
    "SchemaManager",
    "Status",
    "UniqueViolation",
    "Worker",
]
