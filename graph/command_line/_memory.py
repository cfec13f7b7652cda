"""``daruma memory`` and ``daruma knowledge``: what is kept for tasks to recall and to search."""

import asyncio
import json as json_format
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from daruma.graph.command_line._options import (
    AsJson,
    Json,
    Limit,
    Namespace,
    Workspace,
    elsewhere,
    owner_named,
    show_lines,
    show_table,
)
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.command_line._output import Line
    from daruma.graph.command_line._tables import Table
    from daruma.graph.storage import PostgresStore
    from daruma.state.lessons import Remembered
    from daruma.tools.memory import Memories

T = TypeVar("T")

# --- ``daruma memory``: what is remembered for a workspace, looked at and corrected by a person.

memory_app = typer.Typer(
    name="memory",
    help="List, search, add or forget what is remembered; of the current folder, if not told else.",
)


@memory_app.command("list")
def listed(workspace: Workspace = None, namespace: Namespace = None, *, json: Json = False) -> None:
    """List the memories, the newest first."""

    async def look() -> "Table":
        async with _memories(workspace, namespace) as memories:
            found = await memories.all()
            return memory_table(found, [] if found else await memories.other_owners())

    show_table(asyncio.run(look()), as_json=json)


@memory_app.command()
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words that a memory holds.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    limit: Limit = 10,
    json: Json = False,
) -> None:
    """Search the memories, the best first."""

    async def look() -> "Table":
        async with _memories(workspace, namespace) as memories:
            return memory_table(await memories.search(query, limit))

    show_table(asyncio.run(look()), as_json=json)


@memory_app.command()
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    section: Annotated[str, typer.Option(help="A heading to keep it under.")] = "",
    role: Annotated[str, typer.Option(help="Only for the expert of this name.")] = "",
    json: Json = False,
) -> None:
    """Remember something for the tasks to come."""
    from daruma.tools.errors import ToolError
    from daruma.tools.memory import new_memory

    try:
        memory = new_memory(text, section=section, role=role, at=time.time())
    except ToolError as error:
        raise typer.BadParameter(str(error)) from None

    async def keep() -> None:
        async with _memories(workspace, namespace) as memories:
            await memories.remember(memory, by="person")

    asyncio.run(keep())
    show_table(memory_table([memory]), as_json=json)


@memory_app.command()
def forget(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that the list shows.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    json: Json = False,
) -> None:
    """Forget a memory, whichever role it is for."""

    async def drop() -> "list[Remembered]":
        async with _memories(workspace, namespace) as memories:
            return await memories.forget(id_.strip())

    gone = asyncio.run(drop())
    if not gone:
        raise typer.BadParameter(f"there is no memory {id_!r:.80}: see `daruma memory list`")
    show_table(memory_table(gone), as_json=json)


@asynccontextmanager
async def _memories(workspace: str | None, namespace: str | None) -> "AsyncIterator[Memories]":
    from daruma.graph.storage import aopen_postgres
    from daruma.state.settings import Settings
    from daruma.tools.memory import Memories

    owner = await owner_named(workspace, namespace, Settings.load().memory.namespace)
    async with aopen_postgres() as postgres:
        yield Memories(postgres.store, owner, role=None)


def memory_table(memories: "Sequence[Remembered]", others: Sequence[str] = ()) -> "Table":
    """Return a table of memories; where there is none, ``others`` are those who have some."""
    from daruma.graph.command_line._tables import Table
    from daruma.tools.memory import COMMON_ROLE

    def day(memory: "Remembered") -> str:
        return datetime.fromtimestamp(memory.at, UTC).date().isoformat()

    return Table(
        ("id", "role", "section", "day", "text"),
        [
            (each.id, each.role or COMMON_ROLE, each.section, day(each), each.text)
            for each in memories
        ],
        values=[
            {name: value for name, value in asdict(each).items() if name != "schema_version"}
            for each in memories
        ],
        nothing=elsewhere("nothing is remembered", "memories", others),
    )


# --- ``daruma knowledge``: what documents are known, and taking them in and out.

knowledge_app = typer.Typer(
    name="knowledge",
    help="Take documents in, that tasks can search; list, search and forget them.",
)

Within = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this collection.", show_default=False)
]


@knowledge_app.command("add")
def take_in(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    *,
    collection: Annotated[
        str, typer.Option(metavar="NAME", help="Where to keep them.")
    ] = "default",
    json: AsJson = False,
) -> None:
    """Take files and folders in; again, to bring them up to date."""
    from daruma.graph.command_line._output import Line
    from daruma.tools.knowledge import aingest

    done, note = _in_store(lambda store: aingest(store, paths, collection))
    counted = f"{documents(done.changed)} taken in, {done.unchanged} known already"
    lines = [Line("ok", counted, f"{done.passages} passages")]
    lines += [Line("bad", each.source, each.reason) for each in done.skipped]
    _tell({**asdict(done), "note": note}, lines, json=json, note=note)


@knowledge_app.command("list")
def sources(*, collection: Within = None, json: AsJson = False) -> None:
    """List the documents that were taken in."""
    from daruma.graph.command_line._tables import Table
    from daruma.tools.knowledge import asources

    found, _ = _in_store(lambda store: asources(store, collection))
    table = Table(
        ("collection", "passages", "source"),
        [(each.collection, str(each.passages), each.source) for each in found],
        values=[asdict(each) for each in found],
        nothing="nothing was taken in yet: `daruma knowledge add PATH`",
    )
    show_table(table, as_json=json)


@knowledge_app.command("search")
def search_passages(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")] = 5,
    collection: Within = None,
    json: AsJson = False,
) -> None:
    """Search the documents, as the tool hybrid_search does."""
    from daruma.graph.command_line._output import Line
    from daruma.tools.knowledge import KNOWLEDGE_NAMESPACE, collection_namespace

    place = collection_namespace(collection, "passages") if collection else KNOWLEDGE_NAMESPACE
    found, _ = _in_store(
        lambda store: store.afind(place, query, limit=limit, filter={"kind": "passage"})
    )
    values = [{**item.value, "score": item.score} for item in found.items]
    lines = [
        line
        for value in values
        for line in (
            Line("ok", f"{value['source']}:{value['line']}", value["title"]),
            Line("words", value["text"]),
        )
    ]
    told = {"passages": values, "note": found.note}
    _tell(told, lines or [Line("note", "nothing found")], json=json, note=found.note)


@knowledge_app.command("forget")
def take_out(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A path, or a name of the list.")],
    *,
    collection: Within = None,
    json: AsJson = False,
) -> None:
    """Take a document out again, or all of a folder."""
    from daruma.graph.command_line._output import Line
    from daruma.tools.knowledge import aforget

    async def drop(store: "PostgresStore") -> int:
        named = await aforget(store, source, collection)
        return named or await aforget(store, Path(source), collection)

    count, _ = _in_store(drop)
    if not count:
        raise DarumaError(f"no document {source!r} is known: see `daruma knowledge list`")
    _tell({"forgotten": count}, [Line("ok", f"{documents(count)} forgotten")], json=json)


@knowledge_app.command()
def reindex(*, json: AsJson = False) -> None:
    """Make the vectors that are lacking, for the embedding model that is set now."""
    from daruma.graph.command_line._output import Line

    made, note = _in_store(lambda store: store.areindex())
    told = {"made": made, "note": note}
    _tell(told, [Line("ok", f"{made} vectors made")], json=json, note=note)


def _in_store(work: "Callable[[PostgresStore], Awaitable[T]]") -> tuple[T, str]:
    """Do work in the store that the settings mean; return what came of it, and its note."""
    from daruma.graph.storage import aopen_postgres
    from daruma.state.settings import Settings

    async def do() -> tuple[T, str]:
        settings = Settings.load()
        async with aopen_postgres() as postgres:
            store = postgres.store_for(settings.llm)
            return await work(store), store.note

    return asyncio.run(do())


def documents(count: int) -> str:
    """Count documents, in words."""
    return f"{count} document" + ("" if count == 1 else "s")


def _tell(value: object, lines: "Sequence[Line]", *, json: bool, note: str = "") -> None:
    from daruma.graph.command_line._output import Line

    if json:
        typer.echo(json_format.dumps(value))
        return
    show_lines(*lines, *([Line("note", note)] if note else []))
