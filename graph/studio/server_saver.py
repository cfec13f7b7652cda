"""The checkpointer as the development server uses it: deleting a thread keeps nobody waiting."""

import asyncio
import logging
from concurrent.futures import Future
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from typing_extensions import override

from daruma.graph.storage.saver import PostgresSaver

LOG: Final = logging.getLogger("daruma.studio")


class ServerSaver(PostgresSaver):
    """A saver whose deletions go on beside their caller; who reads the thread waits for them.

    The server remembers a thread's place in its list while it awaits the deletion. Where two
    overlap, it takes the wrong thread from that list, and ends a stateless run without an answer.
    """

    _deleting: dict[str, Future[None]]

    @classmethod
    def over(cls, saver: PostgresSaver) -> Self:
        """Make the server's form of a saver."""
        own = cls.__new__(cls)
        own.__dict__.update(saver.__dict__, _deleting={})
        return own

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        name = str(thread_id)
        going = asyncio.run_coroutine_threadsafe(super().adelete_thread(name), self.loop)
        self._deleting[name] = going
        going.add_done_callback(lambda ended: self._ended(name, ended))

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        if going := self._deleting.get(str(config["configurable"].get("thread_id"))):
            await asyncio.wait([asyncio.wrap_future(going)])
        return await super().aget_tuple(config)

    async def all_deleted(self) -> None:
        """Wait for what is being deleted."""
        if going := [asyncio.wrap_future(each) for each in [*self._deleting.values()]]:
            await asyncio.wait(going)

    def _ended(self, name: str, ended: "Future[Any]") -> None:
        if self._deleting.get(name) is ended:
            del self._deleting[name]
        if not ended.cancelled() and (error := ended.exception()):
            LOG.warning(f"thread {name!r} is not deleted: {error}")
