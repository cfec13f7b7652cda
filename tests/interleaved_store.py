"""A store that lets others go first, so that what happens at once does happen at once."""

import asyncio
import random
from collections.abc import Iterable
from typing import Any

from langgraph.store.base import Op
from langgraph.store.memory import InMemoryStore
from typing_extensions import override


class InterleavedStore(InMemoryStore):
    """Waits for some turns of the event loop before and after each batch, by a seed."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._chance = random.Random(seed)  # noqa: S311 - it has to be the same again

    @override
    async def abatch(self, ops: Iterable[Op]) -> Any:
        await self._others()
        found = await super().abatch(ops)
        await self._others()
        return found

    async def _others(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
