"""The learned additions to prompts: as lines on a terminal, tab-separated elsewhere, or as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import typer
from rich.console import Console

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.printable import one_line
from daruma.tools.evolution.variants import Variant


def as_json(variants: Iterable[Variant]) -> str:
    """Return the variants as one JSON array."""
    plain = (asdict(each) for each in variants)
    return json.dumps([{k: v for k, v in each.items() if k != "schema_version"} for each in plain])


def print_variants(variants: Sequence[Variant], paper: Paper | None = None) -> None:
    """Print one line for each: id, text, status, whose prompt, and what was decided last."""
    paper = paper or Paper(Console(highlight=False))
    for each in variants:
        told = (each.status, f"{each.actor}, {each.place}", each.why)
        if paper.terminal:
            about = " · ".join(one_line(text, 200) for text in told if text)
            paper.put(Line("line", f"{each.id}  {one_line(each.text, 400)}", about))
        else:
            row = (each.id, each.status, each.actor, each.place, each.why, each.text)
            line = "\t".join(one_line(text, 4_000) for text in row)
            typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
    if not variants:
        paper.put(Line("note", "no prompt has a learned addition"))
