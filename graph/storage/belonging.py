"""What belongs to checkpoints beside them: replies to what they asked, calls made from them."""

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.types import INTERRUPT

from daruma.graph.storage.pool import Connection
from daruma.state.errors import DamagedState

if TYPE_CHECKING:
    from daruma.graph.storage.saver import PostgresSaver

_PASSED: Final = """
DELETE FROM daruma_effects AS passed
WHERE thread_id = %s AND outcome IS NOT NULL AND checkpoint_id <> ALL(%s)
AND EXISTS (
    SELECT FROM checkpoints AS going
    WHERE going.thread_id = passed.thread_id AND going.checkpoint_ns = passed.checkpoint_ns
    AND going.checkpoint_id = passed.checkpoint_id
)
"""
_ASKING: Final = """
SELECT DISTINCT checkpoint_id AS id FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND channel = %s AND checkpoint_id = ANY(%s)
"""


async def forget_passed_calls(
    connection: Connection, thread_id: str, staying: Collection[str]
) -> None:
    """Delete what came of calls made from checkpoints that are about to go.

    What is in doubt stays; so does a call whose checkpoint a crash lost: it can be made once more.
    """
    await connection.execute(_PASSED, [thread_id, list(staying)])


async def asked_at(
    saver: "PostgresSaver", thread_id: str, ns: str, ids: Collection[str]
) -> frozenset[str]:
    """Return the ids of the questions that were put at some checkpoints.

    Those of a damaged one are left out: nothing can ask them again.
    """

    async def asking(connection: Connection) -> list[str]:
        found = await connection.execute(_ASKING, [thread_id, ns, INTERRUPT, list(ids)])
        return [row["id"] for row in await found.fetchall()]

    asked = set[str]()
    for checkpoint in await saver.transact(asking):
        named = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint}
        with suppress(DamagedState):
            found = await saver.aget_tuple(RunnableConfig(configurable=named))
            for _, channel, value in (found and found.pending_writes) or ():
                asked |= {each.id for each in value} if channel == INTERRUPT else set()
    return frozenset(asked)
