"""The list of memories: as lines on a terminal, tab-separated elsewhere, or as JSON."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

import typer
from rich.console import Console

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.printable import one_line
from daruma.state.channels import Remembered
from daruma.tools.memory.memories import COMMON


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
        whom = memory.role or COMMON
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
