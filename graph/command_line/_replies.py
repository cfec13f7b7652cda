"""Replies to open questions, made of the options of ``daruma answer``."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.types import Interrupt

from daruma.graph.command_line._asking import decision_on
from daruma.graph.command_line._editing import args_in, plan_in
from daruma.graph.command_line._questions import AnswerRefused, approvals_named, how_to_answer

ALL = "*"
"""Stands for all open approvals."""

_REVIEW = ("spec_review_request",)
_CALLS = ("approval_request", "recovery_request")
_WORDS = ("question", "recovery_request")


@dataclass(frozen=True)
class Given:
    """What was said on the command line. ``approve`` and ``deny`` hold approval ids, or ``ALL``.

    An id may be followed by the digest that was shown with it, as in ``ID@DIGEST``.

    ``edit`` names a file with a plan or, where there are ``args``, an approval: they are the JSON
    of the arguments that it is to run with. ``to`` is the id of the question that is answered,
    where several are open. ``always`` says where what is approved may also run from now on, and
    ``pattern`` what of it.
    """

    confirm: bool = False
    reject: str | None = None
    edit: str | None = None
    approve: Collection[str] = ()
    deny: Collection[str] = ()
    reason: str = ""
    text: str | None = None
    args: str | None = None
    to: str | None = None
    always: str | None = None
    pattern: str = ""

    def replies(self, thread: str, questions: Collection[Interrupt]) -> dict[str, Any]:
        """Return the replies by interrupt id. Raises :class:`AnswerRefused`."""
        if not questions:
            raise AnswerRefused(
                f"nothing is open on thread {thread!r}; what a task ended with is answered by the "
                'next message: `daruma run --thread THREAD "..."`'
            )
        kinds, _ = self._what()
        fitting = [question for question in questions if question.value["type"] in kinds]
        if not fitting:
            raise AnswerRefused(
                f"thread {thread!r} waits for another kind of answer: "
                + " or ".join(how_to_answer(thread, questions))
            )
        meant = self._meant(thread, fitting)
        return {question.id: self._reply(question.value) for question in meant}

    def _meant(self, thread: str, fitting: Sequence[Interrupt]) -> Sequence[Interrupt]:
        """Return those that ``to`` names; without it one text is no answer to several questions."""
        if self.to is not None:
            named = [each for each in fitting if each.value.get("id") == self.to]
            if not named:
                known = ", ".join(str(each.value.get("id")) for each in fitting)
                raise AnswerRefused(f"no question {self.to!r} is open; open: {known}")
            return named
        if self.text is not None and len(fitting) > 1:
            raise AnswerRefused(
                "several questions are open, say which one is answered: "
                + " or ".join(how_to_answer(thread, fitting))
            )
        return fitting

    def check(self) -> None:
        """Refuse no answer, and several that exclude each other. Raises :class:`AnswerRefused`."""
        self._what()
        self._edited()
        if self.always and not self.approve:
            raise AnswerRefused("--always goes with --approve")
        if self.pattern and not self.always:
            raise AnswerRefused("--pattern goes with --always thread or --always workspace")

    @property
    def _decides(self) -> bool:
        return bool(self.approve or self.deny) or self.args is not None

    def _what(self) -> tuple[tuple[str, ...], str]:
        said = {
            (_REVIEW, "--confirm"): self.confirm,
            (_REVIEW, "--reject"): self.reject is not None,
            (_REVIEW, "--edit FILE"): self.edit is not None and self.args is None,
            (_CALLS, "--approve/--deny/--edit ID --args"): self._decides,
            (_WORDS, "--text"): self.text is not None,
        }
        found = [what for what, given in said.items() if given]
        if len(found) == 1:
            return found[0]
        if found:
            raise AnswerRefused(f"give one of {', '.join(option for _, option in found)}")
        raise AnswerRefused(f"give an answer: one of {', '.join(option for _, option in said)}")

    def _reply(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if question["type"] == "recovery_request":
            return self._recovery(question)
        if self._decides:
            return {"decisions": self._decisions(question)}
        if self.confirm:
            return {"decision": "confirm"}
        if self.reject is not None:
            return {"decision": "reject", "feedback": self.reject}
        if self.edit is not None:
            return {"decision": "edit", "plan": plan_in(Path(self.edit))}
        return {"answer": self.text}

    def _recovery(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a recovery's question; an id has to be that of the question."""
        if self.text is not None:
            return {"decision": "instruct", "text": self.text}
        if self.args is not None:
            raise AnswerRefused("a recovery is not edited: say what to do instead with --text")
        if self.approve and self.deny:
            raise AnswerRefused("give one of --approve, --deny")
        if others := {*self.approve, *self.deny} - {ALL, question["id"]}:
            raise AnswerRefused(f"{min(others)!r} is not open: the recovery is {question['id']!r}")
        if self.approve:
            return {"decision": "approve"}
        return {"decision": "deny", "reason": self.reason}

    def _decisions(self, question: Mapping[str, Any]) -> list[dict[str, Any]]:
        open_ones = {each["approval_id"]: each for each in question["approvals"]}
        given = self._edited()
        edited = dict(zip(approvals_named(given, open_ones), given.values(), strict=True))
        said: dict[str, Collection[str]] = {
            "edit": edited,
            "approve": approvals_named(self.approve, open_ones),
            "deny": approvals_named(self.deny, open_ones),
        }
        _check_names(said, open_ones)
        decided = dict.fromkeys(open_ones, "")
        for name in open_ones:  # its id counts before `ALL`, which may be nothing
            fitting = (
                how for which in (name, ALL) for how, names in said.items() if which in names
            )
            decided[name] = next(fitting, "")
        if self.pattern and list(decided.values()).count("approve") > 1:
            raise AnswerRefused("--pattern is about one call: name it, as in --approve ID")
        return [
            decision_on(
                open_ones[name], decision, self.reason, edited.get(name), self.always, self.pattern
            )
            for name, decision in decided.items()
            if decision
        ]

    def _edited(self) -> dict[str, dict[str, Any]]:
        if self.args is None:
            return {}
        if self.edit is None:
            raise AnswerRefused("--args goes with --edit ID: name the approval that they are for")
        return {self.edit: args_in(self.args)}


def _check_names(said: Mapping[str, Collection[str]], open_ones: Collection[str]) -> None:
    for name in sorted({name for names in said.values() for name in names}):
        if name != ALL and name not in open_ones:
            raise AnswerRefused(f"no approval {name!r} is open; open: {', '.join(open_ones)}")
        found = [decision for decision, names in said.items() if name in names]
        if len(found) > 1:
            raise AnswerRefused(f"say one thing about {name!r}, not both {' and '.join(found)}")
