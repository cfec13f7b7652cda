"""A run's hold on what it works with: its thread, anywhere, and its workspace, on this host."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from langgraph.types import StateSnapshot

from daruma.graph.leases import Hold, leases_of
from daruma.state.mode import split_prefix


@contextmanager
def thread_held(checkpointer: Any, thread_id: str) -> Iterator[Any]:
    """Hold a thread, and yield the checkpointer to write on it with.

    Raises :class:`~daruma.state.errors.ThreadBusy`.
    """
    leases = leases_of(checkpointer)
    hold = leases.take(thread_id)
    saver = _writing(checkpointer, hold)
    try:
        with _all_stored(saver):
            yield saver
    finally:
        leases.give_back(hold)


@asynccontextmanager
async def athread_held(checkpointer: Any, thread_id: str) -> AsyncIterator[Any]:
    """Do the same, asynchronously."""
    leases = leases_of(checkpointer)
    hold = await leases.atake(thread_id)
    saver = _writing(checkpointer, hold)
    try:
        async with _aall_stored(saver):
            yield saver
    finally:
        await leases.agive_back(hold)


def _writing(checkpointer: Any, hold: Hold) -> Any:
    held = getattr(checkpointer, "held", None)
    return held(hold) if held else checkpointer


@contextmanager
def _all_stored(saver: Any) -> Iterator[None]:
    """See that what a run wrote is stored before it lets go; its own error comes first."""
    settled = getattr(saver, "settled", lambda: None)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # a run that failed says why; what was lost is done again
            settled()
        raise
    settled()


@asynccontextmanager
async def _aall_stored(saver: Any) -> AsyncIterator[None]:
    """Do the same, asynchronously."""
    settled = getattr(saver, "asettled", None)
    try:
        yield
    except BaseException:
        if settled and asyncio._get_running_loop():  # else swept away after its loop was closed
            with suppress(Exception):
                await settled()
        raise
    if settled:
        await settled()


def workspace_of(given: Any, snapshot: StateSnapshot | None) -> str | None:
    """Return the workspace that a run may change; None for one that only chats.

    ``given`` is what the run is started with, once it was admitted.
    """
    task = snapshot.values.get("task") if snapshot else None
    known = task.workspace if task else None
    if not isinstance(given, Mapping):
        return None if task and task.mode == "direct_chat" else known
    mode = given.get("mode") or split_prefix(given["messages"][-1].text)[0]
    return None if mode == "direct_chat" else given.get("workspace") or known
