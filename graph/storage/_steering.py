"""What people send to threads at work, in Postgres, until their histories hold it (FA-14)."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from psycopg.rows import DictRow

from daruma.graph.storage._database import Database
from daruma.graph.storage._ledgers import MOST_WAITING, Hold
from daruma.graph.storage._sealing import Sealing
from daruma.state.errors import DamagedState
from daruma.state.steering import SteeringMessage, steering_id

# --- In Postgres: a row each, which goes with the write that puts it into the history.
#
# A run asks nothing of the database to know whether something waits: its lease tells that when it
# is taken, and each checkpoint when it is stored. So what is sent before the checkpoint that comes
# ahead of a request is in that request, whichever process sent it.

_SEND: Final = """
WITH one_by_one AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended('daruma.steering ' || %(thread)s, 0))
)
INSERT INTO daruma_steering (thread_id, id, kind, message)
SELECT %(thread)s::text, %(id)s, %(kind)s, %(message)s FROM one_by_one
WHERE (SELECT count(*) FROM daruma_steering WHERE thread_id = %(thread)s) < %(most)s
ON CONFLICT (thread_id, id) DO UPDATE SET id = excluded.id
RETURNING id
"""
_READ: Final = """
SELECT id, kind, message FROM daruma_steering WHERE thread_id = %(thread)s ORDER BY number
"""


class PostgresSteering:
    """What waits for threads in a database; of a run's ``hold``, whether anything does."""

    def __init__(self, database: Database, sealing: Sealing, hold: Hold | None = None) -> None:
        self._database = database
        self._sealing = sealing
        self._waits = hold is not None and hold.steered
        self.told = set[str]()
        """Ids of what the history holds: their rows go with the next checkpoint."""

    def waits(self, thread_id: str) -> bool:  # noqa: ARG002 - a run has one thread
        return self._waits

    async def read(self, thread_id: str) -> Sequence[SteeringMessage]:
        self._waits = False
        rows = await self._database.statement(_READ, {"thread": thread_id})
        return [self._opened(thread_id, row) for row in rows]

    async def send(self, thread_id: str, message: SteeringMessage) -> bool:
        packed = json.dumps(asdict(message), ensure_ascii=False).encode()
        kind, sealed = self._sealing.seal(("json", packed), (thread_id, "steering", message.id))
        values = {"thread": thread_id, "id": message.id, "kind": kind, "message": sealed}
        return bool(await self._database.statement(_SEND, values | {"most": MOST_WAITING}))

    def forget(self, thread_id: str, ids: Collection[str]) -> None:  # noqa: ARG002
        self.told.update(ids)

    def stored(self, told: Collection[str], row: Mapping[str, Any]) -> None:
        """Take note that a checkpoint was stored: the rows of what was told are gone."""
        self.told.difference_update(told)
        self._waits = self._waits or row["steered"]

    def _opened(self, thread_id: str, row: DictRow) -> SteeringMessage:
        """Read a message. Raises :class:`~daruma.state.errors.DamagedState`."""
        id_ = row["id"]
        try:
            value = self._sealing.open((row["kind"], row["message"]), (thread_id, "steering", id_))
            return SteeringMessage(**json.loads(value[1]))
        except (DamagedState, TypeError, ValueError) as error:
            raise DamagedState(f"what was sent to thread {thread_id!r}: {error}") from error


def told_in(writes: Sequence[tuple[str, Any]]) -> set[str]:
    """Return the ids of what was sent to a thread and is among what a task writes."""
    written = (value for channel, value in writes if channel == "messages")
    found = (each for value in written if isinstance(value, list) for each in value)
    return {id_ for each in found if (id_ := steering_id(each))}
