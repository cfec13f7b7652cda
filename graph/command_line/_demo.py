"""What the demo says to a newcomer, beside what happens (FA-05)."""

from collections.abc import Callable
from pathlib import Path

from daruma.graph.command_line._output import Line, Paper, Pasted
from daruma.graph.command_line._replies import yes_to
from daruma.graph.command_line._session import Replies
from daruma.graph.command_line._thread_view import Stop
from daruma.graph.scenario import Scenario
from daruma.state.text import on_thread

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
_APPROVAL = "A command is asked about before it runs. Here the demo answers for you: approve."
_ROLLED_BACK = (
    "One phase failed, so the task counts as failed (exit code 1). But the mess is gone: edits, new"
    " files, modes, and the note that git did not know of are as they were, and the phase that did"
    " not depend on it is done."
)
_ENDS = {
    0: "It fell and got up again: the work counts as done because the checks say so.",
    1: "Its budget is spent and the checks are still red. Daruma says so, in words, in the status"
    " and in the exit code (1), rather than claim a success.",
}


_NEXT = {"seven-falls": "rollback", "rollback": "gives-up"}
"""Which scenario to see after another."""


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
            reviewed = any(q.value["type"] == "spec_review_request" for q in stop.questions)
            paper.put(Line("aside", _REVIEW if reviewed else _APPROVAL))
        return replies

    return answer


def ending(thread: str, scenario: Scenario, code: int) -> list[Line]:
    """Say what was seen, and what to try next."""
    if code not in _ENDS:
        return []
    undo = on_thread("undo", thread, "--list")
    other = _NEXT.get(scenario.name, "seven-falls")
    rolled_back = scenario.name == "rollback" and code == 1
    return [
        Line("head", "That was it"),
        Line("aside", _ROLLED_BACK if rolled_back else _ENDS[code]),
        Line("head", "Try next"),
        Pasted("line", on_thread("show", thread), "all that was said and done"),
        Pasted("line", undo, "every state that the files can be put back to"),
        Line("line", "daruma graph", "the machine that you saw walking"),
        Line("line", f"daruma demo {other}", "another story"),
        Pasted(
            "line",
            "daruma run 'Make the tests pass' --workspace DIR --mode plan_exec --model openai:NAME",
            "your own repository",
        ),
    ]
