"""Threads that other processes run: a queue in the same Postgres, and the workers that serve it.

``submit`` leaves a thread to a worker, ``work`` carries out what is queued, ``sweep`` parks
reviews that nobody answered. The queue is procrastinate's, an extra.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.graph.workers._execution import GraphFactory, asweep, kept_with, sweep
    from daruma.graph.workers._submission import Pace, reader_on
    from daruma.graph.workers._tasks import Tasks
    from daruma.graph.workers._work import acancel, asubmit, awork, cancel, serve, submit, work
else:
    __getattr__ = open_late(
        __name__,
        {
            "_execution": "GraphFactory asweep kept_with sweep",
            "_submission": "Pace reader_on",
            "_tasks": "Tasks",
            "_work": "acancel asubmit awork cancel serve submit work",
        },
    )

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
