"""The list of threads: as a table on a terminal, as tab-separated lines elsewhere."""

from collections.abc import Sequence
from datetime import datetime

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.printable import one_line
from daruma.graph.command_line.thread_view import ThreadView
from daruma.graph.durations import ago

_NARROWEST = 8
"""Columns of a goal; rather than less, times are left out."""

_STYLES = {"completed": "green"} | dict.fromkeys(
    ("waiting", "parked", "held", "unfinished"), "yellow"
)
_STYLES |= {"running": "cyan", "queued": "cyan"}


def print_threads(paper: Paper, views: Sequence[ThreadView], now: datetime | None = None) -> None:
    """Print one line for each thread: name, status, when, goal."""
    now = now or datetime.now().astimezone()
    if not views:
        paper.put(Line("note", "there are no threads yet: try `daruma demo`"))
    elif paper.terminal:
        _print_columns(paper.console, views, now)
    else:
        for view in views:
            texts = (view.thread, view.status, view.updated_at.isoformat(), _goal(view))
            row = "\t".join(one_line(text, 500) for text in texts)
            typer.echo(row, file=paper.console.file)  # Rich would turn tabs into spaces


def _print_columns(console: Console, views: Sequence[ThreadView], now: datetime) -> None:
    names = [Text(one_line(view.thread)) for view in views]
    standings = [Text(view.status, style=_STYLES.get(view.status, "red")) for view in views]
    times = [Text(ago((now - view.updated_at).total_seconds()), style="dim") for view in views]
    columns = [names, standings, times]
    if console.width - _width(columns) < _NARROWEST:
        columns.remove(times)
    room = max(_NARROWEST, console.width - _width(columns))
    table = Table.grid(padding=(0, 2, 0, 0))
    for width in (*map(_widest, columns), room):
        table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    for view, *row in zip(views, *columns, strict=True):
        table.add_row(*row, Text(one_line(_goal(view))))
    console.print(table)


def _width(columns: Sequence[Sequence[Text]]) -> int:
    return sum(_widest(column) + 2 for column in columns)


def _widest(column: Sequence[Text]) -> int:
    return max(text.cell_len for text in column)


def _goal(view: ThreadView) -> str:
    goal = view.task.goal if view.task else view.damage or view.request
    asked = view.stop.result.clarification if view.stop and view.stop.result else None
    return f"{goal} (asks: {asked.question})" if asked else goal
