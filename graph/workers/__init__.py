"""Threads that other processes run: a queue in the same Postgres, and the workers that serve it.

``submit`` leaves a thread to a worker, ``work`` carries out what is queued, ``sweep`` parks
reviews that nobody answered. The queue is procrastinate's, an extra: locks, timed jobs, signs of
life, and what becomes of a dead worker's jobs are all its own.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.workers._execution import (
        GraphFactory,
        Pace,
        asweep,
        kept_with,
        reader_on,
        sweep,
    )
    from daruma.graph.workers._queue import Tasks
    from daruma.graph.workers._work import acancel, asubmit, awork, cancel, serve, submit, work
else:

    def _explain(name: str) -> "EngineMissing | None":
        said = "workers need procrastinate: pip install 'daruma-agent[worker]'"
        return EngineMissing(said) if name == "procrastinate" else None

    __getattr__ = open_late(
        __name__,
        {
            "_execution": "GraphFactory Pace asweep kept_with reader_on sweep",
            "_queue": "Tasks",
            "_work": "acancel asubmit awork cancel serve submit work",
        },
        _explain,
    )


class EngineMissing(DarumaError, ImportError):
    """Raised when procrastinate is not installed."""


__all__ = [
    "GraphFactory",
    "Pace",
    "Tasks",
    "acancel",
    "asubmit",
    "asweep",
    "awork",
    "cancel",
    "kept_with",
    "reader_on",
    "serve",
    "submit",
    "sweep",
    "work",
]
