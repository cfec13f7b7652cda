"""One pitfall on paper: what it says, how sure it is, and what tasks say of it."""

import json
from datetime import UTC, datetime
from typing import Final

from rich.console import Console

from daruma.graph.command_line.paper import Line, Mark, Paper
from daruma.graph.command_line.pitfall_list import plain, tasks
from daruma.graph.command_line.pitfall_view import Told
from daruma.graph.command_line.printable import one_line
from daruma.tools.evolution.evidence import Evidence, How

_HOW: Final[dict[How, tuple[Mark, str]]] = {
    "failed": ("bad", "met it"),
    "clear": ("ok", "went well, not told of it"),
    "avoided": ("ok", "was told of it, and went well"),
    "repeated": ("bad", "was told of it, and met it again"),
    "in_vain": ("bad", "was told of it, and fell to something else"),
}


def as_json(told: Told) -> str:
    """Return a pitfall with its evidence as one JSON object."""
    evidence = [
        {"task": each.task, "how": each.how, "at": each.at, "goal": each.goal}
        for each in told.evidence
    ]
    return json.dumps({**plain(told.pitfall), "evidence": evidence})


def print_pitfall(told: Told, paper: Paper | None = None) -> None:
    """Print it. Its texts come from tools and models: nothing in them is obeyed."""
    paper = paper or Paper(Console(highlight=False))
    pitfall = told.pitfall
    paper.put(Line("head", one_line(pitfall.text, 400), f"{pitfall.level} · {pitfall.id}"))
    if pitfall.advice:
        paper.put(Line("words", one_line(pitfall.advice, 400)))
    counts = f"seen in {tasks(pitfall.tasks)}, {pitfall.clear} alike went well untold"
    fed = pitfall.avoided + pitfall.repeated + pitfall.in_vain
    told_to = f"told to {fed}, of which {pitfall.avoided} went well"
    shared = "shared" if pitfall.shared else "not shared"
    paper.put(
        Line("note", f"{pitfall.kind} of {one_line(pitfall.actor, 100)}: {pitfall.signature}"),
        Line("note", f"confidence {pitfall.confidence:.2f} by now: {counts}; {told_to}"),
        Line("note", f"of {one_line(pitfall.owner, 400)}, {shared}"),
    )
    paper.put(Line("head", "Goals"), *(Line("line", one_line(goal, 400)) for goal in pitfall.goals))
    paper.put(Line("head", "Tasks"), *(_line(each) for each in told.evidence))


def _line(evidence: Evidence) -> Line:
    mark, said = _HOW[evidence.how]
    day = datetime.fromtimestamp(evidence.at, UTC).date().isoformat()
    return Line(mark, f"{one_line(evidence.task, 200)} {said}", day)
