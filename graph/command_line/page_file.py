"""``daruma show THREAD --html``: a run as one file."""

import os
import re
from pathlib import Path

import typer
from langchain_core.runnables import RunnableConfig

from daruma.state.errors import DarumaError

MADE_HERE = '<meta name="generator" content="daruma">'
"""Stands near the beginning of every page: only such a file is written over."""

_SHOWN = "-"
_LONGEST = 200
"""Bytes of a file's name before its ending; file systems take 255 in all."""


class PageRefused(DarumaError):
    """Raised for a file that can not be written, or is no page of ours; says which and why."""


def write_page(thread: str, file: str | None, page: str) -> None:
    """Write a page to a file, THREAD.html unless named, or to standard output for ``-``.

    An older page is written over, anything else is not: raises :class:`PageRefused`.
    """
    if file == _SHOWN:
        typer.echo(page.encode(), nl=False)
        return
    path = Path(file or f"{_file_name(thread)}.html")
    if os.path.lexists(path) and not _is_ours(path):
        raise PageRefused(f"{path} is there and is no page of Daruma's: name another file")
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        reason = f"{path} can not be written ({error.strerror}): name another file"
        raise PageRefused(reason) from None
    typer.echo(f"{path}")


def _file_name(thread: str) -> str:
    name = re.sub(r"[^\w.-]+", "_", thread).lstrip(".") or "thread"
    return name.encode()[:_LONGEST].decode(errors="ignore")


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MADE_HERE.encode() in file.read(2000)


async def page_of_thread(thread: str) -> str:
    """Return the page of a thread.

    Raises :class:`~daruma.graph.pictures.seen_machine.NothingToSee` where there is no such thread.
    """
    from daruma.graph.build import build_graph
    from daruma.graph.storage.postgres import aopen_postgres
    from daruma.state.settings import Settings

    async with aopen_postgres() as postgres:
        graph = build_graph(settings=Settings(), persistence=postgres)
        config = RunnableConfig(configurable={"thread_id": thread})
        return (await graph.atimeline(config)).page()
