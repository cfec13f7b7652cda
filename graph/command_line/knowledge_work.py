"""What the commands of ``daruma knowledge`` do with the store that the settings mean."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.storage.store import PostgresStore
from daruma.state.settings import Settings
from daruma.tools.knowledge.documents import ROOT, place
from daruma.tools.knowledge.ingesting import Ingested, Source, aforget, aingest, asources
from daruma.tools.text.search import Found


@asynccontextmanager
async def _store() -> AsyncIterator[PostgresStore]:
    settings = Settings.load()
    async with aopen_postgres() as postgres:
        yield postgres.store_for(settings.llm)


async def added(paths: Sequence[Path], collection: str) -> tuple[Ingested, str]:
    """Take files and folders in; return what came of it, and the store's note."""
    async with _store() as store:
        done = await aingest(store, paths, collection)
        return done, store.note


async def listed(collection: str | None) -> list[Source]:
    """Return the documents there are."""
    async with _store() as store:
        return await asources(store, collection)


async def searched(query: str, limit: int, collection: str | None) -> Found:
    """Return the passages that a query finds."""
    prefix = place(collection, "passages") if collection else ROOT
    async with _store() as store:
        return await store.afind(prefix, query, limit=limit, filter={"kind": "passage"})


async def forgotten(source: str, collection: str | None) -> int:
    """Take a document out by its name, else by its path; return how many went."""
    async with _store() as store:
        named = await aforget(store, source, collection)
        return named or await aforget(store, Path(source), collection)


async def reindexed() -> tuple[int, str]:
    """Make the vectors that are lacking; return how many were made, and the store's note."""
    async with _store() as store:
        return await store.areindex(), store.note
