"""What the server keeps threads and memories in: Daruma's own Postgres, with its fences."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver

from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.storage.store import PostgresStore
from daruma.graph.studio.patient_leases import PatientLeases
from daruma.graph.studio.server_saver import ServerSaver
from daruma.state.channels import refuse_misfits
from daruma.state.settings import Settings


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
