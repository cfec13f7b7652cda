"""Asking a person on the terminal, while nothing is running and no connection is open."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daruma.graph.command_line.approval_talk import ApprovalTalk
from daruma.graph.command_line.choosing import Later, Read, choice, words
from daruma.graph.command_line.drafts import Drafts
from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.plan_talk import PlanTalk
from daruma.graph.command_line.questions import options_of, question_lines
from daruma.graph.command_line.session import Stop
from daruma.state.spending import amount_in


def ask(
    stop: Stop, paper: Paper, *, known: bool, read: Read = input, drafts: Drafts | None = None
) -> dict[str, Any]:
    """Ask all open questions and return the replies by interrupt id; none for "later".

    A ``known`` plan stands right above the question. The end of the input means "later". What a
    person writes in an editor is kept in ``drafts``, for when it is asked about again.
    """
    asking = _Asking(paper, read, drafts or Drafts(), stop.checks, known)
    try:
        return {question.id: asking.about(question.value) for question in stop.questions}
    except (Later, EOFError):
        if sum(map(_decisions, stop.questions)) > 1:
            paper.put(Line("note", "nothing was answered: all of it stays open"))
        return {}


@dataclass(frozen=True)
class _Asking:
    paper: Paper
    read: Read
    drafts: Drafts
    checks: Sequence[str] = ()
    known: bool = False

    def about(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if value["type"] == "approval_request":
            return {"decisions": self._decisions(value["approvals"])}
        if value["type"] == "spec_review_request":
            talk = PlanTalk(self.paper, self.read, self.drafts, self.checks)
            return talk.decide(value, known=self.known)
        self.paper.put(*question_lines(value, known=self.known))
        if value["type"] == "question":
            return {"answer": _answer(options_of(value), self.read, value.get("amounts") or ())}
        if value["type"] == "recovery_request":
            return _recover(self.read)
        raise Later

    def _decisions(self, approvals: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        talk, of = ApprovalTalk(self.paper, self.read, self.drafts), len(approvals)
        return [
            talk.decide(each, f"{number} of {of}" if of > 1 else "")
            for number, each in enumerate(approvals, 1)
        ]


def _decisions(question: Any) -> int:
    return len(question.value.get("approvals") or (None,))


def _recover(read: Read) -> dict[str, Any]:
    offered = {"a": "[a]pprove", "d": "[d]eny", "i": "[i]nstruct", "l": "[l]ater"}
    said = choice(offered, read)
    if said == "i":
        return {"decision": "instruct", "text": words("What to do instead (empty: later)", read)}
    if said == "a":
        return {"decision": "approve"}
    return {"decision": "deny", "reason": read("  Why not (may be empty): ").strip()}


def _answer(options: Sequence[str], read: Read, amounts: Sequence[str] = ()) -> str:
    """Return what is typed; of options, the only one that begins with it, or an amount."""
    if not options:
        return words("Your answer (empty: later)", read)
    while True:
        named = ", ".join([*options, *(f"{amount} NUMBER" for amount in amounts)])
        said = words(f"{named} (empty: later)", read).casefold()
        if (found := amount_in(said)) and found[0] in amounts:
            return said
        meant = [each for each in options if each.casefold().startswith(said)]
        if len(meant) == 1:
            return meant[0]


def follow_command(thread: str) -> str:
    """Return the command that tells what is done on a thread elsewhere."""
    return f"daruma show {shlex.quote(thread)} --follow"


def resume_command(thread: str) -> str:
    """Return the command that goes on with a thread, ready to be pasted."""
    return f"daruma resume {shlex.quote(thread)}"
