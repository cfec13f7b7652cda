"""Stores that do with what evolution writes whatever a store can do wrong; all else is kept."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any, Final, Literal

from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

Ill = Literal["none", "raises", "hangs", "blocks", "full"]
ILL: Final[tuple[Ill, ...]] = ("raises", "hangs", "blocks", "full")


class StoreFull(OSError):
    """Raised like a disk's: nothing more can be written."""


class IllStore(InMemoryStore):
    """``raises``, ``hangs`` until it is cancelled, ``blocks`` its thread until released, or full.

    What hangs and blocks goes on once ``release`` is set. ``asked`` is set with the first write.
    """

    def __init__(self, ill: Ill = "none") -> None:
        super().__init__()
        self.ill = ill
        self.asked, self.release = threading.Event(), threading.Event()

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        await self.suffer(given)
        return await super().abatch(given)

    async def suffer(self, ops: Iterable[Op]) -> None:
        """Do what is wrong with it, if evolution is about to write."""
        if not any(_is_evolution_s(op) for op in ops):
            return
        self.asked.set()
        if self.ill == "raises":
            raise ConnectionError("the store is gone, with sk-abcdefghijklmnop")
        if self.ill == "full":
            raise StoreFull(28, "No space left on device")
        if self.ill == "hangs":
            await asyncio.Event().wait()
        if self.ill == "blocks":
            self.release.wait()


def _is_evolution_s(op: Any) -> bool:
    return isinstance(op, PutOp) and op.namespace[:2] == ("daruma", "evolution")
