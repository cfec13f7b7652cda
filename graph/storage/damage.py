"""A damaged checkpoint, named, with the one before it that a thread can go on from."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.runnables import RunnableConfig

from daruma.graph.storage.pool import Pool
from daruma.state.errors import DamagedState

_BEFORE: Final = """
SELECT checkpoint_id FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id < %s
ORDER BY checkpoint_id DESC OFFSET %s LIMIT %s
"""
_TRIED: Final = 100
"""Checkpoints: more than a delta channel's chain has between two of its snapshots."""


@dataclass(frozen=True)
class Where:
    """A checkpoint. ``since`` is the oldest one whose damage it is, such as a lost ancestor."""

    thread: str
    namespace: str
    checkpoint: str
    since: str = ""


class DamagedCheckpoint(DamagedState):
    """Raised for a checkpoint that can not be read."""

    def __init__(self, where: Where, reason: str, advice: str = "") -> None:
        within = f" in {where.namespace!r}" if where.namespace else ""
        named = f"checkpoint {where.checkpoint}{within} of thread {where.thread!r}"
        super().__init__(f"{named}: {reason}{advice}")
        self.where, self.reason = where, reason


class LostAncestor(DamagedState):
    """Raised for what is wrong with an older checkpoint, that another is replayed from."""

    def __init__(self, reason: str, since: str) -> None:
        super().__init__(reason)
        self.since = since


@contextmanager
def damage_at(thread: str, namespace: str, checkpoint: str) -> Iterator[None]:
    """Name the checkpoint in which damage is found."""
    try:
        yield
    except DamagedCheckpoint:
        raise
    except DamagedState as error:
        since = error.since if isinstance(error, LostAncestor) else ""
        raise DamagedCheckpoint(Where(thread, namespace, checkpoint, since), str(error)) from error


async def advised(
    damage: DamagedCheckpoint, pool: Pool, read: Callable[[RunnableConfig], Awaitable[Any]]
) -> DamagedCheckpoint:
    """Return the error with what to do: which checkpoint before it can be read, if any."""
    where = damage.where
    # A member's checkpoints begin anew with another checkpoint of the thread itself, but not with
    # that which started the member.
    limits = [where.thread, where.since or where.checkpoint, int(bool(where.namespace)), _TRIED]
    async with pool.connection() as connection:
        found = await connection.execute(_BEFORE, limits)
        known = [row["checkpoint_id"] for row in await found.fetchall()]
    for earlier in known:
        try:
            await read(_config(where.thread, earlier))
        except DamagedState:
            continue
        return DamagedCheckpoint(where, damage.reason, _going_on(where.thread, earlier))
    return DamagedCheckpoint(where, damage.reason, "; none before it is whole: begin a new thread")


def _config(thread: str, checkpoint: str) -> RunnableConfig:
    names = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}
    return RunnableConfig(configurable=names)


def _going_on(thread: str, checkpoint: str) -> str:
    return (
        f"; the one before it, {checkpoint}, is whole: go on from there with "
        f"`daruma resume {thread} --from {checkpoint}`, or with that `checkpoint_id` in the config"
    )
