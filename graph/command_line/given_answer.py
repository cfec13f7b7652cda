"""Replies to open questions, made of the options of ``daruma answer``."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.types import Interrupt

from daruma.graph.command_line.assent import decision_on
from daruma.graph.command_line.questions import how_to_answer
from daruma.state.errors import DarumaError

ALL = "*"
"""Stands for all open approvals."""


class AnswerRefused(DarumaError):
    """Raised for an answer that fits no open question; the questions stay open."""


@dataclass(frozen=True)
class Given:
    """What was said on the command line. ``approve`` and ``deny`` hold approval ids, or ``ALL``."""

    confirm: bool = False
    reject: str | None = None
    edit: Path | None = None
    approve: Collection[str] = ()
    deny: Collection[str] = ()
    reason: str = ""
    text: str | None = None

    def replies(self, thread: str, questions: Collection[Interrupt]) -> dict[str, Any]:
        """Return the replies by interrupt id. Raises :class:`AnswerRefused`."""
        if not questions:
            raise AnswerRefused(f"nothing is open on thread {thread!r}")
        kind, _ = self._what()
        fitting = [question for question in questions if question.value["type"] == kind]
        if not fitting:
            raise AnswerRefused(
                f"thread {thread!r} waits for another kind of answer: "
                + " or ".join(how_to_answer(thread, questions))
            )
        return {question.id: self._reply(question.value) for question in fitting}

    def check(self) -> None:
        """Refuse no answer, and several that exclude each other. Raises :class:`AnswerRefused`."""
        self._what()

    def _what(self) -> tuple[str, str]:
        said = {
            ("spec_review_request", "--confirm"): self.confirm,
            ("spec_review_request", "--reject"): self.reject is not None,
            ("spec_review_request", "--edit"): self.edit is not None,
            ("approval_request", "--approve/--deny"): bool(self.approve or self.deny),
            ("question", "--text"): self.text is not None,
        }
        found = [what for what, given in said.items() if given]
        if len(found) == 1:
            return found[0]
        if found:
            raise AnswerRefused(f"give one of {', '.join(option for _, option in found)}")
        raise AnswerRefused(f"give an answer: one of {', '.join(option for _, option in said)}")

    def _reply(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self.approve or self.deny:
            return {"decisions": self._decisions(question)}
        if self.confirm:
            return {"decision": "confirm"}
        if self.reject is not None:
            return {"decision": "reject", "feedback": self.reject}
        if self.edit is not None:
            return {"decision": "edit", "plan": _plan_in(self.edit)}
        return {"answer": self.text}

    def _decisions(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        open_ones = {each["approval_id"]: each for each in question["approvals"]}
        named = {*self.approve, *self.deny} - {ALL}
        if unknown := sorted(named - open_ones.keys()):
            raise AnswerRefused(f"no approval {unknown[0]!r} is open; open: {', '.join(open_ones)}")
        if clash := {*self.approve} & {*self.deny}:
            raise AnswerRefused(f"{clash.pop()!r} can not be both approved and denied")
        decided = {name: self._decision(name) for name in open_ones}
        return [
            decision_on(open_ones[name], decision, self.reason)
            for name, decision in decided.items()
            if decision
        ]

    def _decision(self, name: str) -> str:
        """An id that is named counts before ``ALL``."""
        for decision, ids in (("approve", self.approve), ("deny", self.deny)):
            if name in ids:
                return decision
        return "approve" if ALL in self.approve else "deny" if ALL in self.deny else ""


def _plan_in(file: Path) -> dict[str, Any]:
    try:
        plan = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerRefused(f"the plan {file} can not be read: {error}") from None
    except ValueError as error:
        raise AnswerRefused(f"the plan {file} is not JSON: {error}") from None
    if not isinstance(plan, dict):
        raise AnswerRefused(f"the plan {file} is not an object with phases")
    return plan
