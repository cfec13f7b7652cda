"""Thinning a thread: its newest checkpoint stays just as it is, and what led to it goes (DU-08)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from langgraph.checkpoint.postgres.base import (
    PRUNE_DELTA_THREADS_SQL,
    PRUNE_HEADS_SQL,
    PRUNE_SNAPSHOT_SQL,
    _keep_latest,
)

from daruma.graph.storage.belonging import forget_passed_calls
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.wholeness import Whole, whole

if TYPE_CHECKING:
    from daruma.graph.storage.saver import PostgresSaver

_NOT_OURS: Final = (PRUNE_DELTA_THREADS_SQL, PRUNE_SNAPSHOT_SQL)
"""Statements of LangGraph's that are left out: it refuses delta channels, and keeps other writers
out by an isolation level; here that is done by wholeness, and by the lease of the thread."""

_Staying = tuple[Whole, str | None]
"""A checkpoint, and the one before it where that one stays too."""


async def thin(saver: "PostgresSaver", thread_id: str) -> None:
    """Delete what came before the newest checkpoint of a thread that the saver holds.

    Pending writes stay with that checkpoint: open questions can be answered as before. Team members
    that are at work keep their newest one too. Crash-safe and idempotent.
    """

    async def heads(connection: Connection) -> Sequence[Mapping[str, Any]]:
        return await (await connection.execute(PRUNE_HEADS_SQL, [thread_id] * 4)).fetchall()

    found = await saver.transact(heads)
    newest = next((each["head"] for each in found if not each["checkpoint_ns"]), None)
    staying = [
        (await whole(saver, thread_id, each["checkpoint_ns"], each["head"]), each["sends_parent"])
        for each in found
        if _stays(each, newest)
    ]
    await saver.transact(lambda connection: _thinned(saver, connection, thread_id, staying))


def _stays(head: Mapping[str, Any], newest: str | None) -> bool:
    """Whether a namespace is the thread's own, or of a call that its newest checkpoint has made."""
    return ":" not in head["checkpoint_ns"] or not head["root_saved"] or head["root"] == newest


async def _thinned(
    saver: "PostgresSaver", connection: Connection, thread_id: str, staying: Sequence[_Staying]
) -> None:
    kept = list[str]()
    for each, parent in staying:
        await each.put(saver, connection, parent)
        kept += [each.config["configurable"]["checkpoint_id"], *([parent] if parent else [])]
    await forget_passed_calls(connection, thread_id, kept)
    statements = _keep_latest(thread_id)
    rows: Sequence[Any] | None = None
    try:
        while True:
            # LangGraph's own way of deleting, statement by statement
            text, values, told = next(statements) if rows is None else statements.send(list(rows))
            rows = []
            if text not in _NOT_OURS:
                done = await connection.execute(text.encode(), values, prepare=False)
                rows = await done.fetchall() if told else []
    except StopIteration:
        return
