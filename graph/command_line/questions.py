"""Open questions as a person sees them: exactly what will be, and the command that answers."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from daruma.graph.command_line.edit_preview import shown_approval
from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.plan_lines import review_lines
from daruma.graph.command_line.recovery_lines import recovery_lines
from daruma.graph.command_line.rollback_lines import DECISIONS
from daruma.graph.command_line.shown_digest import as_shown


def question_lines(
    value: Mapping[str, Any], *, known: bool = False, checks: Sequence[str] = ()
) -> list[Line]:
    """Return a question as lines; a ``known`` plan has just been shown and is not shown again.

    ``checks`` are the commands that the work under a plan will be checked with.
    """
    if value["type"] == "spec_review_request":
        parked = "parked: it waits, without a deadline" if value.get("parked") else ""
        return [
            Line("head", "Is this plan right?", parked),
            *review_lines(value, checks, known=known),
        ]
    if value["type"] == "approval_request":
        return [line for each in _numbered(value["approvals"]) for line in each]
    if value["type"] == "recovery_request":
        return [Line("head", "May this be done about a failure?"), *recovery_lines(value)]
    context = [Line("note", value["context"])] if value.get("context") else []
    return [Line("head", str(value.get("question", value["type"]))), *context]


def _numbered(approvals: Sequence[Mapping[str, Any]]) -> Iterator[list[Line]]:
    for number, approval in enumerate(approvals, 1):
        which = f"{number} of {len(approvals)}" if len(approvals) > 1 else ""
        yield [Line("head", "May this run?", which), *shown_approval(approval)]


def options_of(value: Mapping[str, Any]) -> list[str]:
    """Return what a question can be answered with; none where any words will do."""
    return [str(each) for each in value.get("options") or ()]


def is_held(value: Mapping[str, Any]) -> bool:
    """Whether a question holds its thread after a rollback that failed."""
    options = set(options_of(value))
    return {"retry", "keep"} <= options <= DECISIONS.keys()


def how_to_answer(thread: str, questions: Collection[Interrupt]) -> list[str]:
    """Return the commands that answer, ready to be pasted."""
    command = f"daruma answer {shlex.quote(thread)}"
    commands = []
    worded = [each for each in questions if each.value["type"] == "question"]
    for question in questions:
        several = question in worded and len(worded) > 1
        which = f"--to {shlex.quote(str(question.value['id']))} " if several else ""
        commands += [f"{command} {which}{option}" for option in _options(question.value)]
    return commands


def _options(value: Mapping[str, Any]) -> list[str]:
    if value["type"] == "spec_review_request":
        return ["--confirm", "--reject 'what to change'"]
    if value["type"] == "question":
        given = [f"--text {shlex.quote(each)}" for each in options_of(value)]
        given += [f"--text '{amount} NUMBER'" for amount in value.get("amounts") or ()]
        return given or ["--text 'your answer'"]
    if value["type"] == "recovery_request":
        pinned = f"--approve {shlex.quote(value['id'])}"  # a later recovery is another one
        return [pinned, "--deny --reason 'why not'", "--text 'what to do instead'"]
    if value["type"] != "approval_request":
        return []
    ids = [shlex.quote(as_shown(each)) for each in value["approvals"]]
    each = [f"--approve {name}" for name in ids]
    every = [" ".join(each)] if len(ids) > 1 else []
    edits = [f"--edit {name} --args 'its new arguments, as JSON'" for name in ids]
    return [*every, *each, "--deny --reason 'why not'", *edits]
