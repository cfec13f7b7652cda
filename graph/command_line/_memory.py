"""``daruma memory`` and ``daruma knowledge``: what is kept for tasks to recall and to search."""

import json as json_format
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from daruma.graph.command_line._messages import counted
from daruma.graph.command_line._options import (
    AsJson,
    Json,
    Limit,
    Namespace,
    Workspace,
    day_of,
    elsewhere,
    in_storage,
    owner_named,
    paper_of,
    values_of,
)
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.command_line._output import Line
    from daruma.graph.command_line._tables import Table
    from daruma.graph.storage import Postgres, PostgresStore
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

    async def look(memories: "Memories") -> "Table":
        found = await memories.all()
        return memory_table(found, [] if found else await memories.other_owners())

    _in_memories(workspace, namespace, look).show(paper_of(), as_json=json)


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

    found = _in_memories(workspace, namespace, lambda memories: memories.search(query, limit))
    memory_table(found).show(paper_of(), as_json=json)


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

    _in_memories(workspace, namespace, lambda memories: memories.remember(memory, by="person"))
    memory_table([memory]).show(paper_of(), as_json=json)


@memory_app.command()
def forget(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that the list shows.")],
    workspace: Workspace = None,
    namespace: Namespace = None,
    *,
    json: Json = False,
) -> None:
    """Forget a memory, whichever role it is for."""

    gone = _in_memories(workspace, namespace, lambda memories: memories.forget(id_.strip()))
    if not gone:
        raise typer.BadParameter(f"there is no memory {id_!r:.80}: see `daruma memory list`")
    memory_table(gone).show(paper_of(), as_json=json)


def _in_memories(
    workspace: str | None, namespace: str | None, work: "Callable[[Memories], Awaitable[T]]"
) -> T:
    from daruma.state.settings import Settings
    from daruma.tools.memory import Memories

    owner = owner_named(workspace, namespace, Settings.load().memory.namespace)
    return in_storage(lambda postgres: work(Memories(postgres.store, owner, role=None)))


def memory_table(memories: "Sequence[Remembered]", others: Sequence[str] = ()) -> "Table":
    """Return a table of memories; where there is none, ``others`` are those who have some."""
    from daruma.graph.command_line._tables import Table
    from daruma.tools.memory import COMMON_ROLE

    return Table(
        ("id", "role", "section", "day", "text"),
        [
            (each.id, each.role or COMMON_ROLE, each.section, day_of(each.at), each.text)
            for each in memories
        ],
        values=[*map(values_of, memories)],
        nothing=elsewhere("nothing is remembered", "memories", others),
    )


# --- ``daruma knowledge``: what documents are known, and taking them in and out.

knowledge_app = typer.Typer(
    name="knowledge", help="Take documents in, that tasks can search; list, search and forget them."
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
    said = f"{counted(done.changed, 'document')} taken in, {done.unchanged} known already"
    lines = [Line("ok", said, f"{done.passages} passages")]
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
    table.show(paper_of(), as_json=json)


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
    lines = list[Line]()
    for each in values:
        lines.append(Line("ok", f"{each['source']}:{each['line']}", each["title"]))
        lines.append(Line("words", each["text"]))
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
    _tell({"forgotten": count}, [Line("ok", f"{counted(count, 'document')} forgotten")], json=json)


@knowledge_app.command()
def reindex(*, json: AsJson = False) -> None:
    """Make the vectors that are lacking, for the embedding model that is set now."""
    from daruma.graph.command_line._output import Line

    made, note = _in_store(lambda store: store.areindex())
    lines = [Line("ok", f"{made} vectors made")]
    _tell({"made": made, "note": note}, lines, json=json, note=note)


def _in_store(work: "Callable[[PostgresStore], Awaitable[T]]") -> tuple[T, str]:
    """Do work in the store that the settings mean; return what came of it, and its note."""
    from daruma.state.settings import Settings

    settings = Settings.load()

    async def do(postgres: "Postgres") -> tuple[T, str]:
        store = postgres.store_for(settings.llm)
        return await work(store), store.note

    return in_storage(do)


def _tell(value: object, lines: "Sequence[Line]", *, json: bool, note: str = "") -> None:
    from daruma.graph.command_line._output import Line

    if json:
        typer.echo(json_format.dumps(value))
        return
    paper_of().put(*lines, *([Line("note", note)] if note else []))
