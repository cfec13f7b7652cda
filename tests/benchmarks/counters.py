"""What Postgres did meanwhile: transactions that wrote, and bytes of its log."""

from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from tests.benchmarks.task import Task

_COUNTERS: Final = """
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
       (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint
"""
"""The next transaction id: only transactions that write get one, and asking takes none."""


@dataclass(frozen=True)
class Written:
    """Transactions that wrote, and bytes of the write-ahead log; of a whole server."""

    transactions: float
    wal: float


def now(connection: Connection[Any]) -> Written:
    """Return what the server has written so far."""
    row = connection.execute(_COUNTERS).fetchone() or (0, 0)
    return Written(int(row[0]), int(row[1]))


class StepCounters:
    """Reads the counters at the first and the last call of a task's tool.

    Between them lie whole steps alone: what a run does at its beginning and its end is not in it.
    """

    def __init__(self, connection: Connection[Any], task: Task) -> None:
        self._connection, self._task = connection, task
        self._seen: dict[int, Written] = {}
        task.at_call = self._note

    def _note(self, call: int) -> None:
        if call in {1, self._task.steps}:
            self._seen[call] = now(self._connection)

    def a_step(self) -> Written:
        """Return what a step of the last run wrote, on average."""
        first, last, steps = self._seen[1], self._seen[self._task.steps], self._task.steps - 1
        transactions = (last.transactions - first.transactions) / steps
        return Written(transactions, (last.wal - first.wal) / steps)
