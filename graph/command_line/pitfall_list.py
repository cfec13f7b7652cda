"""The list of pitfalls: as lines on a terminal, tab-separated elsewhere, or as JSON."""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

import typer
from rich.console import Console

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.pitfall_view import PitfallView
from daruma.graph.command_line.printable import one_line
from daruma.state.lessons import Pitfall

MOST_NAMED: Final = 5
"""Others that are named where there is nothing."""


def plain(pitfall: Pitfall) -> dict[str, Any]:
    """Return a pitfall as JSON-able values."""
    return {key: value for key, value in asdict(pitfall).items() if key != "schema_version"}


def as_json(pitfalls: Iterable[Pitfall]) -> str:
    """Return pitfalls as one JSON array."""
    return json.dumps([plain(each) for each in pitfalls])


def print_pitfalls(view: PitfallView, paper: Paper | None = None) -> None:
    """Print one line for each: id, text, level, actor, confidence, tasks and the day seen last."""
    paper = paper or Paper(Console(highlight=False))
    for each in view.pitfalls:
        told = (each.level, each.actor, f"{each.confidence:.2f}", tasks(each.tasks), day(each))
        if paper.terminal:
            about = " · ".join(one_line(text, 100) for text in told)
            paper.put(Line("line", f"{each.id}  {each.text}", about))
        else:
            row = (each.id, *told[:3], str(each.tasks), told[4], each.text)
            line = "\t".join(one_line(text, 4_000) for text in row)
            typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
    if note := _note(view):
        paper.put(Line("note", note))


def print_forgotten(pitfall: Pitfall, made: Iterable[str] = (), paper: Paper | None = None) -> None:
    """Say what is gone, and which additions to prompts were ``made`` of it and stay."""
    paper = paper or Paper(Console(highlight=False))
    about = f"{pitfall.actor} · {tasks(pitfall.tasks)}"
    paper.put(Line("ok", f"forgotten: {one_line(pitfall.text, 400)}", about))
    for each in made:
        told = "an addition to a prompt was made of it, and stays"
        paper.put(Line("note", f"{told}: see `daruma pitfalls withdraw {each}`"))


def tasks(number: int) -> str:
    """Say a number of tasks."""
    return f"{number} task{'' if number == 1 else 's'}"


def day(pitfall: Pitfall) -> str:
    """Return the day that a pitfall was seen last."""
    return datetime.fromtimestamp(pitfall.last_at, UTC).date().isoformat()


def _note(view: PitfallView) -> str:
    if view.pitfalls:
        more = f"{view.left_out} more that are not sure enough: see --all"
        return more if view.left_out and not view.level else ""
    if view.left_out:
        return f"there are {view.left_out}, none of them {view.level or 'sure enough'}: see --all"
    return nothing(view.others)


def nothing(others: Sequence[str], what: str = "pitfalls") -> str:
    """Say that there is nothing, and who has some."""
    if not others:
        return f"there are no {what}"
    named = ", ".join(shlex.quote(one_line(each, 200)) for each in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    return f"there are no {what} here; there are some of {named}{more}: see --namespace"
