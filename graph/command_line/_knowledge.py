"""``daruma knowledge``: what documents are known, and taking them in and out."""

import asyncio
import json as json_format
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line._options import AsJson

if TYPE_CHECKING:
    from daruma.graph.command_line._output import Line


knowledge_app = typer.Typer(
    name="knowledge",
    help="Take documents in, that tasks can search; list, search and forget them.",
)

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")]
Into = Annotated[str, typer.Option(metavar="NAME", help="Where to keep them.")]
Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")]
Limit = Annotated[int, typer.Option(min=1, max=100, help="Passages to show.")]
Named = Annotated[str, typer.Argument(metavar="SOURCE", help="A path, or a name `list` shows.")]
Within = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this collection.", show_default=False)
]


@knowledge_app.command()
def add(paths: Paths, *, collection: Into = "default", json: AsJson = False) -> None:
    """Take files and folders in; again, to bring them up to date."""
    from daruma.graph.command_line._memory_view import added
    from daruma.graph.command_line._output import Line

    done, note = asyncio.run(added(paths, collection))
    counted = f"{documents(done.changed)} taken in, {done.unchanged} known already"
    lines = [Line("ok", counted, f"{done.passages} passages")]
    lines += [Line("bad", each.source, each.reason) for each in done.skipped]
    _tell({**asdict(done), "note": note}, lines, json=json, note=note)


@knowledge_app.command("list")
def listed(*, collection: Within = None, json: AsJson = False) -> None:
    """List the documents that were taken in."""
    from daruma.graph.command_line import _memory_view as knowledge_work
    from daruma.graph.command_line._output import Line

    found = asyncio.run(knowledge_work.listed(collection))
    lines = [
        Line("line", each.source, f"{each.collection}, {each.passages} passages") for each in found
    ]
    nothing = Line("note", "nothing was taken in yet: `daruma knowledge add PATH`")
    _tell([asdict(each) for each in found], lines or [nothing], json=json)


@knowledge_app.command()
def search(
    query: Query, *, limit: Limit = 5, collection: Within = None, json: AsJson = False
) -> None:
    """Search the documents, as the tool hybrid_search does."""
    from daruma.graph.command_line._memory_view import searched
    from daruma.graph.command_line._output import Line

    found = asyncio.run(searched(query, limit, collection))
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


@knowledge_app.command()
def forget(source: Named, *, collection: Within = None, json: AsJson = False) -> None:
    """Take a document out again, or all of a folder."""
    from daruma.graph.command_line._memory_view import forgotten
    from daruma.graph.command_line._output import Line
    from daruma.state.errors import DarumaError

    count = asyncio.run(forgotten(source, collection))
    if not count:
        raise DarumaError(f"no document {source!r} is known: see `daruma knowledge list`")
    _tell({"forgotten": count}, [Line("ok", f"{documents(count)} forgotten")], json=json)


@knowledge_app.command()
def reindex(*, json: AsJson = False) -> None:
    """Make the vectors that are lacking, for the embedding model that is set now."""
    from daruma.graph.command_line._memory_view import reindexed
    from daruma.graph.command_line._output import Line

    made, note = asyncio.run(reindexed())
    told = {"made": made, "note": note}
    _tell(told, [Line("ok", f"{made} vectors made")], json=json, note=note)


def documents(count: int) -> str:
    """Count documents, in words."""
    return f"{count} document" + ("" if count == 1 else "s")


def _tell(value: object, lines: "Sequence[Line]", *, json: bool, note: str = "") -> None:
    from rich.console import Console

    from daruma.graph.command_line._output import Line, Paper

    if json:
        typer.echo(json_format.dumps(value))
        return
    paper = Paper(Console(highlight=False))
    paper.put(*lines)
    if note:
        paper.put(Line("note", note))
