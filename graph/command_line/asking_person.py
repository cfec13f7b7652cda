"""Asking a person on the terminal, while nothing is running and no connection is open."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daruma.graph.command_line.approval_lines import approval_lines
from daruma.graph.command_line.assent import decision_on
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.questions import options_of, question_lines
from daruma.graph.command_line.session import Stop

Read = Callable[[str], str]


class Later(Exception):
    """Raised when a person leaves a question open; it is no error."""


def ask(stop: Stop, paper: Paper, *, known: bool, read: Read = input) -> dict[str, Any]:
    """Ask all open questions and return the replies by interrupt id; none for "later".

    A ``known`` plan stands right above the question. The end of the input means "later".
    """
    try:
        return {
            question.id: _ask(question.value, paper, read, known=known)
            for question in stop.questions
        }
    except (Later, EOFError):
        return {}


def _ask(value: Mapping[str, Any], paper: Paper, read: Read, *, known: bool) -> dict[str, Any]:
    if value["type"] == "approval_request":
        paper.put(Line("head", "May this run?"))
        return {"decisions": [_decide(each, paper, read) for each in value["approvals"]]}
    paper.put(*question_lines(value, known=known))
    if value["type"] == "question":
        return {"answer": _answer(options_of(value), read)}
    if value["type"] == "recovery_request":
        return _recover(read)
    if value["type"] != "spec_review_request":
        raise Later
    if _choice("[c]onfirm, [r]eject, [l]ater", "crl", read) == "c":
        return {"decision": "confirm"}
    return {"decision": "reject", "feedback": _text("What should change (empty: later)", read)}


def _recover(read: Read) -> dict[str, Any]:
    said = _choice("[a]pprove, [d]eny, [i]nstruct, [l]ater", "adil", read)
    if said == "i":
        return {"decision": "instruct", "text": _text("What to do instead (empty: later)", read)}
    if said == "a":
        return {"decision": "approve"}
    return {"decision": "deny", "reason": read("  Why not (may be empty): ").strip()}


def _decide(approval: Mapping[str, Any], paper: Paper, read: Read) -> dict[str, Any]:
    paper.put(*approval_lines(approval))
    if _choice("[a]pprove, [d]eny, [l]ater", "adl", read) == "a":
        return decision_on(approval, "approve")
    return decision_on(approval, "deny", read("  Why not (may be empty): ").strip())


def _choice(prompt: str, letters: str, read: Read) -> str:
    while True:
        answer = read(f"  {prompt}: ").strip().lower()[:1]
        if answer == "l":
            raise Later
        if answer and answer in letters:
            return answer


def _answer(options: Sequence[str], read: Read) -> str:
    """Return what is typed; of options, the only one that begins with it."""
    if not options:
        return _text("Your answer (empty: later)", read)
    while True:
        said = _text(f"{', '.join(options)} (empty: later)", read).casefold()
        meant = [each for each in options if each.casefold().startswith(said)]
        if len(meant) == 1:
            return meant[0]


def _text(prompt: str, read: Read) -> str:
    text = read(f"  {prompt}: ").strip()
    if not text:
        raise Later
    return text


def follow_command(thread: str) -> str:
    """Return the command that tells what is done on a thread elsewhere."""
    return f"daruma show {shlex.quote(thread)} --follow"


def resume_command(thread: str) -> str:
    """Return the command that goes on with a thread, ready to be pasted."""
    return f"daruma resume {shlex.quote(thread)}"
