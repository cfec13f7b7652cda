"""What ``langgraph.json`` names: the graph of the development server, who may call that, and what
it keeps threads and memories in: Daruma's own Postgres, with its fences.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from starlette.applications import Starlette
from starlette.middleware import Middleware
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.follow import ListedOrigins
from daruma.graph.scenario import ShownModel
from daruma.graph.storage import Hold, Leases, PostgresSaver, PostgresStore, aopen_postgres
from daruma.graph.studio._machine import StudioMachine
from daruma.state.channels import refuse_misfits
from daruma.state.errors import ThreadBusy
from daruma.state.settings import Settings

# --- Leases for a server that keeps the runs of a thread apart itself, but for a moment at an end.

SECONDS: Final = 10.0
"""How long a thread is waited for: a run that is cancelled kills its commands first."""

_BETWEEN: Final = 0.05


@dataclass(frozen=True)
class PatientLeases:
    """Leases that are waited for. The server takes a run back, and begins another, as one ends."""

    leases: Leases
    seconds: float = SECONDS

    def take(self, thread_id: str) -> Hold:
        return self.leases.take(thread_id)

    async def atake(self, thread_id: str) -> Hold:
        until = time.monotonic() + self.seconds
        while True:
            try:
                return await self.leases.atake(thread_id)
            except ThreadBusy:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(_BETWEEN)

    def give_back(self, hold: Hold) -> None:
        self.leases.give_back(hold)

    async def agive_back(self, hold: Hold) -> None:
        await self.leases.agive_back(hold)


# --- The checkpointer as the development server uses it: deleting a thread keeps nobody waiting.

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


# --- What the server keeps threads and memories in: Daruma's own Postgres, with its fences.


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpointer for as long as the server runs.

    It is that of ``DARUMA_POSTGRES_URL``, else of the embedded server.
    """
    async with aopen_postgres() as postgres:
        saver = ServerSaver.over(postgres.checkpointer.expecting(refuse_misfits))
        yield saver.leasing(PatientLeases(saver.leases))
        await saver.all_deleted()


@asynccontextmanager
async def store() -> AsyncIterator[PostgresStore]:
    """Open the store beside it; with ``llm.embedding_model`` it finds by meaning, too."""
    settings = await asyncio.to_thread(Settings.load)
    async with aopen_postgres() as postgres:
        yield await asyncio.to_thread(postgres.store_for, settings.llm)


# --- The graph, and who may call it.


async def graph() -> StudioMachine:
    """Return the graph of ``langgraph dev`` (FA-02), built once, from the settings of this folder.

    With no model in them it plays a shipped example, so that there is something to look at.
    """
    return await asyncio.to_thread(_built)


@cache
def _built() -> StudioMachine:
    settings = Settings.load().with_a_person()
    model = None if settings.llm.model else ShownModel()
    return StudioMachine.over(build_graph(model, settings=settings))


def listed() -> tuple[str, ...]:
    """Return the origins that ``http.cors.allow_origins`` lists: the server hands them on."""
    http: Any = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
    return tuple((http.get("cors") or {}).get("allow_origins") or ())


app = Starlette(middleware=[Middleware(ListedOrigins, origins=listed())])
"""The server puts its own routes behind this: pages of other origins start nothing (SE-03)."""
