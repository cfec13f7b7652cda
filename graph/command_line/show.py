"""``daruma threads`` (alone), ``show`` and ``graph``: looking, without changing anything."""

import asyncio
import json as json_format
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line.options import AsJson, ThreadName

if TYPE_CHECKING:
    from daruma.graph.command_line.paper import Paper
    from daruma.graph.command_line.thread_view import ThreadView


def threads() -> None:
    """List the threads, the one used last first."""
    from rich.console import Console

    from daruma.graph.command_line.paper import Paper
    from daruma.graph.command_line.thread_list import print_threads

    print_threads(Paper(Console(highlight=False)), asyncio.run(_newest()))


def show(
    thread: ThreadName,
    *,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Tell what happens until it stops."),
    ] = False,
    tail: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only the last N things that happened.")
    ] = None,
    json: AsJson = False,
    html: Annotated[bool, typer.Option("--html", help="Write it as one HTML page.")] = False,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="Where the page goes; - for standard output."),
    ] = None,
) -> None:
    """Show what happened on a thread, where it stands, and what it waits for."""
    if html or file:
        _write_page(thread, file, alone=html and not (follow or json or tail is not None))
        return
    from rich.console import Console

    from daruma.graph.command_line.paper import Paper
    from daruma.graph.command_line.thread_story import print_end, print_story

    paper = Paper(Console(stderr=follow and json, highlight=False))
    view = asyncio.run(_followed(thread, paper) if follow else _one(thread))
    if json:
        typer.echo(json_format.dumps(view.to_dict()))
    elif follow:
        print_end(paper, view)
    else:
        print_story(paper, view, tail)


def _write_page(thread: str, file: str | None, *, alone: bool) -> None:
    from daruma.graph.command_line.page_file import page_of_thread, write_page

    if not alone:
        raise typer.BadParameter("FILE goes with --html, and --html with no other option")
    write_page(thread, file, asyncio.run(page_of_thread(thread)))


def graph() -> None:
    """Print the machine as a Mermaid flowchart."""
    from daruma.graph.diagram import mermaid

    typer.echo(mermaid(), nl=False)


async def _newest() -> "list[ThreadView]":
    from daruma.graph.command_line.thread_view import newest_threads
    from daruma.graph.storage.postgres import aopen_postgres

    async with aopen_postgres() as postgres:
        return await newest_threads(postgres)


async def _followed(thread: str, paper: "Paper") -> "ThreadView":
    from daruma.graph.command_line.following import follow
    from daruma.graph.storage.postgres import aopen_postgres

    async with aopen_postgres() as postgres:
        return await follow(postgres, thread, paper)


async def _one(thread: str) -> "ThreadView":
    from daruma.graph.command_line.thread_view import whole_view
    from daruma.graph.storage.postgres import aopen_postgres

    async with aopen_postgres() as postgres:
        return await whole_view(postgres, thread)
