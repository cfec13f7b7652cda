"""What tasks would have been given, on paper or as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Console

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.printable import one_line
from daruma.state.lessons import Experience, WouldHave
from daruma.tools.evolution.lessons import in_words


def as_json(experiences: Iterable[Experience]) -> str:
    """Return for each task what it would have been given, as one JSON array."""
    return json.dumps(
        [
            {
                "task": each.task_id,
                "goal": each.goal,
                "at": each.at,
                "status": each.status,
                **each.would_have.lessons.to_dict(),
                "actions": list(each.would_have.actions),
            }
            for each in experiences
            if each.would_have
        ]
    )


def print_would(experiences: Sequence[Experience], paper: Paper | None = None) -> None:
    """Print each task, and under it what it would have been told of."""
    paper = paper or Paper(Console(highlight=False))
    for each in experiences:
        if each.would_have:
            paper.put(Line("head", one_line(each.goal, 200), f"{each.task_id} · {each.status}"))
            paper.put(*_lines(each.would_have))
    if not experiences:
        paper.put(Line("note", "no task would have been given anything"))


def _lines(found: WouldHave) -> list[Line]:
    told = [
        Line("line", one_line(each.text, 400), f"pitfall {each.id}")
        for each in found.lessons.pitfalls
    ]
    rest = replace(found, lessons=replace(found.lessons, pitfalls=()))
    return told + ([Line("note", one_line(in_words(rest), 400))] if rest.anything else [])
