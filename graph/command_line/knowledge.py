"""``daruma knowledge``: what documents are known, and taking them in and out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daruma.graph.command_line.options import AsJson

if TYPE_CHECKING:
    from daruma.graph.storage.store import PostgresStore
    from daruma.tools.finding import Found
    from daruma.tools.knowledge import Ingested, Source

knowledge_app = typer.Typer(
    name="knowledge",
    help="Take documents in, that tasks can search; list, search and forget them.",
    no_args_is_help=True,
)

InCollection = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this collection.", show_default=False)
]


@knowledge_app.command()
def add(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    *,
    collection: Annotated[
        str, typer.Option(metavar="NAME", help="Where to keep them.")
    ] = "default",
    json: AsJson = False,
) -> None:
    """Take files and folders in; again, to bring them up to date."""
    import asyncio

    done, note = asyncio.run(_added(paths, collection))
    if json:
        return _say({**_fields(done), "note": note})
    counted = f"{done.changed} documents taken in, {done.unchanged} known already"
    lines = [("ok", counted, f"{done.passages} passages")]
    lines += [("bad", each.source, each.reason) for each in done.skipped]
    _print(lines, note)


@knowledge_app.command("list")
def listed(*, collection: InCollection = None, json: AsJson = False) -> None:
    """List the documents that were taken in."""
    import asyncio

    found = asyncio.run(_listed(collection))
    if json:
        return _say([_fields(each) for each in found])
    _print(
        [("line", each.source, f"{each.collection}, {each.passages} passages") for each in found]
        or [("note", "nothing was taken in yet: `daruma knowledge add PATH`", "")]
    )


@knowledge_app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")] = 5,
    collection: InCollection = None,
    json: AsJson = False,
) -> None:
    """Search the documents, as the tool hybrid_search does."""
    import asyncio

    found = asyncio.run(_searched(query, limit, collection))
    if json:
        passages = [{**item.value, "score": item.score} for item in found.items]
        return _say({"passages": passages, "note": found.note})
    lines: list[tuple[Any, str, str]] = []
    for item in found.items:
        lines.append(("ok", f"{item.value['source']}:{item.value['line']}", item.value["title"]))
        lines.append(("words", item.value["text"], ""))
    _print(lines or [("note", "nothing found", "")], found.note)


@knowledge_app.command()
def forget(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A path, or a name `list` shows.")
    ],
    *,
    collection: InCollection = None,
    json: AsJson = False,
) -> None:
    """Take a document out again, or all of a folder."""
    import asyncio

    from daruma.state.errors import DarumaError

    count = asyncio.run(_forgotten(source, collection))
    if not count:
        raise DarumaError(f"no document {source!r} is known: see `daruma knowledge list`")
    if json:
        return _say({"forgotten": count})
    _print([("ok", f"{count} documents forgotten", "")])


@knowledge_app.command()
def reindex(*, json: AsJson = False) -> None:
    """Make the vectors that are lacking, for the embedding model that is set now."""
    import asyncio

    made, note = asyncio.run(_reindexed())
    if json:
        return _say({"made": made, "note": note})
    _print([("ok", f"{made} vectors made", "")], note)


@asynccontextmanager
async def _store() -> "AsyncIterator[PostgresStore]":
    from daruma.graph.storage.postgres import aopen_postgres
    from daruma.state.settings import Settings

    settings = Settings.load()
    async with aopen_postgres() as postgres:
        yield postgres.store_for(settings.llm)


async def _added(paths: list[Path], collection: str) -> "tuple[Ingested, str]":
    from daruma.tools.knowledge import aingest

    async with _store() as store:
        done = await aingest(store, paths, collection)
        return done, store.note


async def _listed(collection: str | None) -> "list[Source]":
    from daruma.tools.knowledge import asources

    async with _store() as store:
        return await asources(store, collection)


async def _searched(query: str, limit: int, collection: str | None) -> "Found":
    from daruma.tools.knowledge.places import ROOT, place

    prefix = place(collection, "passages") if collection else ROOT
    async with _store() as store:
        return await store.afind(prefix, query, limit=limit, filter={"kind": "passage"})


async def _forgotten(source: str, collection: str | None) -> int:
    from daruma.tools.knowledge import aforget

    async with _store() as store:
        named = await aforget(store, source, collection)
        return named or await aforget(store, Path(source), collection)


async def _reindexed() -> tuple[int, str]:
    async with _store() as store:
        return await store.areindex(), store.note


def _fields(record: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(record)


def _say(value: object) -> None:
    import json

    typer.echo(json.dumps(value))


def _print(lines: list[tuple[Any, str, str]], note: str = "") -> None:
    from rich.console import Console

    from daruma.graph.command_line.paper import Line, Paper

    paper = Paper(Console(highlight=False))
    paper.put(*(Line(mark, text, tail) for mark, text, tail in lines))
    if note:
        paper.put(Line("note", note))
