"""What a checkpointer can do with whole threads, each held meanwhile: nobody runs it (DU-03)."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from daruma.graph.held import athread_held
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.run_removal import THREADS_OF, remove_runs
from daruma.graph.storage.thinning import thin
from daruma.graph.storage.thread_rows import copy_rows, delete_rows

if TYPE_CHECKING:
    from daruma.graph.storage.saver import PostgresSaver


@asynccontextmanager
async def holding(saver: "PostgresSaver", thread_id: str) -> "AsyncIterator[PostgresSaver]":
    """Hold a thread, unless the saver does. Raises :class:`~daruma.state.errors.ThreadBusy`."""
    if saver.hold and saver.hold.thread_id == thread_id:
        yield saver
    else:
        async with athread_held(saver, thread_id) as own:
            yield own


async def delete_thread(saver: "PostgresSaver", thread_id: str) -> None:
    """Delete a thread with all that belongs to it in the database, in one transaction."""
    async with holding(saver, thread_id) as own:
        await own.transact(lambda connection: delete_rows(connection, thread_id))


async def copy_thread(saver: "PostgresSaver", source: str, target: str) -> None:
    """Copy a thread with its whole history to a name that is free.

    Raises :class:`~daruma.graph.storage.thread_rows.ThreadTaken` for one that is not.
    """
    if source == target:
        return
    async with holding(saver, source), holding(saver, target) as own:
        await own.transact(lambda connection: copy_rows(connection, source, target, saver.sealing))


async def prune_threads(saver: "PostgresSaver", thread_ids: Sequence[str], strategy: str) -> None:
    """Delete threads, or keep but their newest checkpoint, one after the other.

    Raises ``TypeError`` and ``ValueError`` as LangGraph's own does.
    """
    if isinstance(thread_ids, str):
        raise TypeError("thread_ids must be a sequence of thread ids, not a text")
    if strategy not in ("keep_latest", "delete"):
        raise ValueError(f"the strategy {strategy!r} is neither 'keep_latest' nor 'delete'")
    for thread_id in map(str, thread_ids):
        async with holding(saver, thread_id) as own:
            if strategy == "keep_latest":
                await thin(own, thread_id)
            else:
                await delete_thread(own, thread_id)


async def delete_for_runs(saver: "PostgresSaver", run_ids: Sequence[str]) -> None:
    """Take runs back, wherever they are: ``run_id`` in the metadata of their config names them."""

    async def find(connection: Connection) -> list[str]:
        found = await connection.execute(THREADS_OF, [list(map(str, run_ids))])
        return [row["thread_id"] for row in await found.fetchall()]

    for thread_id in await saver.transact(find):
        async with holding(saver, thread_id) as own:
            await remove_runs(own, thread_id, [str(each) for each in run_ids])
