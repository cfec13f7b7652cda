"""Lists of memories, and work on known documents."""

import json
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._printable import one_line
from daruma.graph.storage import PostgresStore, aopen_postgres
from daruma.state.lessons import Remembered
from daruma.state.settings import Settings
from daruma.tools.knowledge import (
    KNOWLEDGE_NAMESPACE,
    Ingested,
    Source,
    aforget,
    aingest,
    asources,
    collection_namespace,
)
from daruma.tools.memory import COMMON_ROLE
from daruma.tools.text import SearchResult

# --- The list of memories: as lines on a terminal, tab-separated elsewhere, or as JSON.


def as_json(memories: Sequence[Remembered]) -> str:
    """Return the memories as one JSON array."""
    plain = (asdict(memory) for memory in memories)
    return json.dumps([{k: v for k, v in each.items() if k != "schema_version"} for each in plain])


MOST_NAMED: Final = 5
"""Others that are named where there is nothing."""


def print_memories(
    memories: Sequence[Remembered], paper: Paper | None = None, *, others: Sequence[str] = ()
) -> None:
    """Print one line for each memory: id, text, whom it is for, its section and its day.

    Where there is none, ``others`` are those who have some.
    """
    paper = paper or Paper(Console(highlight=False))
    if not memories:
        paper.put(Line("note", _nothing(others)))
    for memory in memories:
        day = datetime.fromtimestamp(memory.at, UTC).date().isoformat()
        whom = memory.role or COMMON_ROLE
        if paper.terminal:
            about = " · ".join(one_line(each, 100) for each in (whom, memory.section, day) if each)
            paper.put(Line("line", f"{memory.id}  {memory.text}", about))
        else:
            texts = (memory.id, whom, memory.section, day, memory.text)
            row = "\t".join(one_line(text, 4_000) for text in texts)
            typer.echo(row, file=paper.console.file)  # Rich would turn tabs into spaces


def _nothing(others: Sequence[str]) -> str:
    if not others:
        return "nothing is remembered"
    named = ", ".join(shlex.quote(one_line(each, 200)) for each in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return f"nothing is remembered here; there are memories of {named}{more}: see --namespace"


# --- What the commands of ``daruma knowledge`` do with the store that the settings mean.


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


async def searched(query: str, limit: int, collection: str | None) -> SearchResult:
    """Return the passages that a query finds."""
    prefix = collection_namespace(collection, "passages") if collection else KNOWLEDGE_NAMESPACE
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
