"""What the demo says to a newcomer, beside what happens."""

import shlex
from collections.abc import Callable
from pathlib import Path

from daruma.graph.command_line.assent import yes_to
from daruma.graph.command_line.demo import Scenario
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.session import Replies, Stop

ASIDES = {
    "plan_proposed": "Daruma plans first. Every step it takes is kept in Postgres, so that it could"
    " be killed here and resumed elsewhere.",
    "phase_started": "Now the model works with tools: it may read and edit files in the"
    " repository, and run its tests.",
    "verification_started": "The model says that it is done. Daruma does not take its word for it:"
    " it runs the checks itself.",
    "reflected": "The checks disagree, so the work is not done. Before the next attempt the model"
    " says what went wrong.",
}
"""Remarks by event; each is made once, before its event."""

_REVIEW = (
    "Nothing is done before a person has seen the plan. Here the demo answers for you: confirm."
)
_ENDS = {
    0: "It fell and got up again: the work counts as done because the checks say so.",
    1: "Its budget is spent and the checks are still red. Daruma says so, in words, in the status"
    " and in the exit code (1), rather than claim a success.",
}


def beginning(scenario: Scenario, repository: Path) -> list[Line]:
    """Say what will be seen, and where."""
    return [
        Line("head", f"daruma demo {scenario.name}", scenario.title),
        Line("aside", "No key, no server: a scripted model plays the model's part."),
        Line("aside", "The repository, its tests, the commands and the database are real."),
        Line("note", f"repository: {repository}"),
    ]


def reviewer(paper: Paper) -> Callable[[Stop], Replies]:
    """Return who answers the demo's questions, for everyone to see."""

    def answer(stop: Stop) -> Replies:
        replies = yes_to(stop.questions)
        if replies:
            paper.put(Line("aside", _REVIEW))
        return replies

    return answer


def ending(thread: str, scenario: Scenario, code: int) -> list[Line]:
    """Say what was seen, and what to try next."""
    if code not in _ENDS:
        return []
    name = shlex.quote(thread)
    other = "seven-falls" if scenario.name != "seven-falls" else "gives-up"
    return [
        Line("head", "That was it"),
        Line("aside", _ENDS[code]),
        Line("head", "Try next"),
        Line("line", f"daruma show {name}", "all that was said and done"),
        Line("line", "daruma graph", "the machine that you saw walking"),
        Line("line", f"daruma demo {other}", "another story"),
        Line(
            "line",
            "daruma run 'Make the tests pass' --workspace DIR --mode plan_exec --model openai:NAME",
            "your own repository",
        ),
    ]
