"""Asking a person on the terminal, while nothing is running."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langgraph.types import Interrupt

from daruma.graph.command_line._editing import Edit, edited, edited_until, from_yaml, to_yaml
from daruma.graph.command_line._output import Later, Line, Paper, Read, choice, cut, words
from daruma.graph.command_line._questions import (
    options_of,
    question_lines,
    review_lines,
    shown_approval,
)
from daruma.graph.command_line._thread_view import Stop
from daruma.state.allowances import Allowance, read_pattern
from daruma.state.interrupts import read_reply
from daruma.state.plan import FIELDS
from daruma.state.spending import amount_in

# --- What is agreed to without asking: the reach of ``--yes``, and how one decision is worded.


def decision_on(
    approval: Mapping[str, Any],
    decision: str,
    reason: str = "",
    args: Mapping[str, Any] | None = None,
    always: str | None = None,
    pattern: str = "",
) -> dict[str, Any]:
    """Return a decision that names exactly what was asked: its id and its digest.

    A reason goes with ``deny``, new arguments go with ``edit``, ``always`` with ``approve``.
    """
    told: dict[str, Any] = {"reason": reason} if decision == "deny" else {}
    told |= {"args": dict(args)} if args is not None else {}
    if always and decision == "approve":
        told |= {"always": always, "pattern": pattern}
    return {
        "approval_id": approval["approval_id"],
        "digest": approval["digest"],
        "decision": decision,
        **told,
    }


def yes_to(questions: Collection[Interrupt]) -> dict[str, Any]:
    """Return what ``--yes`` says: plans, recoveries and optional approvals are fine.

    A required approval is a person's to give, and a question has no yes.
    """
    replies: dict[str, Any] = {}
    for question in questions:
        if question.value["type"] == "spec_review_request":
            replies[question.id] = {"decision": "confirm"}
        elif question.value["type"] == "recovery_request":
            replies[question.id] = {"decision": "approve"}
        elif question.value["type"] == "approval_request":
            optional = [each for each in question.value["approvals"] if not each["required"]]
            if decisions := [decision_on(each, "approve") for each in optional]:
                replies[question.id] = {"decisions": decisions}
    return replies


_CALL_CHOICES: Final = {
    "a": "[a]pprove",
    "d": "[d]eny",
    "e": "[e]dit",
    "s": "[s]how whole",
    "l": "[l]ater",
}
_ALWAYS: Final = {
    "t": ("thread", "always on this [t]hread"),
    "w": ("workspace", "always in this [w]orkspace"),
}
_PATTERN: Final = "  Pattern, as 'pytest *' or 'amount=*' (empty: exactly this call): "
_WHY_NOT: Final = "  Why not (may be empty): "
_PLAN_CHOICES: Final = {
    "c": "[c]onfirm",
    "r": "[r]eject",
    "e": "[e]dit",
    "s": "[s]how whole",
    "l": "[l]ater",
}


# --- Asking a person on the terminal, while nothing is running and no connection is open.


def ask(
    stop: Stop, paper: Paper, *, known: bool, read: Read = input, edit: Edit = edited
) -> dict[str, Any]:
    """Ask all open questions and return the replies by interrupt id; none for "later".

    A ``known`` plan stands right above the question. The end of the input means "later".
    """
    asking = _Asking(paper, read, edit, stop.checks)
    try:
        return {each.id: asking.about(each.value, known=known) for each in stop.questions}
    except (Later, EOFError):
        decisions = [len(each.value.get("approvals") or (None,)) for each in stop.questions]
        if sum(decisions) > 1:
            paper.put(Line("note", "nothing was answered: all of it stays open"))
        return {}


@dataclass(frozen=True)
class _Asking:
    """How things are decided. ``checks`` are the commands that judge the work at its end.

    Each method raises :class:`~daruma.graph.command_line._output.Later`.
    """

    paper: Paper
    read: Read
    edit: Edit
    checks: Sequence[str]

    def about(self, value: Mapping[str, Any], *, known: bool) -> dict[str, Any]:
        if value["type"] == "approval_request":
            asked, of = enumerate(value["approvals"], 1), len(value["approvals"])
            decided = [self._call(each, f"{n} of {of}" if of > 1 else "") for n, each in asked]
            return {"decisions": decided}
        if value["type"] == "spec_review_request":
            return self._plan(value, known=known)
        self.paper.put(*question_lines(value, known=known))
        if value["type"] == "question":
            return {"answer": _answer(options_of(value), self.read, value.get("amounts") or ())}
        if value["type"] == "recovery_request":
            return _recover(self.read)
        raise Later

    # --- One call: everything is shown, and it can be changed before it is let run.

    def _call(self, approval: Mapping[str, Any], which: str) -> dict[str, Any]:
        """Return the decision on one call; ``which`` is its place, as in "3 of 5".

        What is agreed to is what was shown last.
        """
        shown = approval
        self._show(shown, which)
        while True:
            scopes = approval.get("always", ()) if shown is approval else ()
            always = {key: text for key, (scope, text) in _ALWAYS.items() if scope in scopes}
            said = choice({**_CALL_CHOICES, **always}, self.read)
            if said == "a":
                changed = shown["args"] != approval["args"]
                args = shown["args"] if changed else None
                return decision_on(approval, "edit" if changed else "approve", args=args)
            if said in _ALWAYS:
                return self._always(approval, _ALWAYS[said][0])
            if said == "d":
                return decision_on(approval, "deny", self.read(_WHY_NOT).strip())
            if said == "s":
                self.paper.put(*shown_approval(shown))
            elif (args := self._edited(shown["args"], from_yaml)) is not None:
                command = {"command": str(args.get("command", ""))}
                shown = {
                    **approval,
                    **(command if approval.get("command") else {}),
                    "args": args,
                    "warnings": (),
                }
                self._show(shown, "as you changed it")

    def _show(self, approval: Mapping[str, Any], which: str) -> None:
        self.paper.put(Line("head", "May this run?", which), *cut(shown_approval(approval)))

    def _always(self, approval: Mapping[str, Any], scope: str) -> dict[str, Any]:
        """Return a yes to calls to come, once it is said what it covers."""
        while True:
            pattern = self.read(_PATTERN).strip()
            try:
                args, free, words = read_pattern(approval["tool"], approval["args"], pattern)
            except ValueError as error:
                self.paper.put(Line("bad", str(error)))
            else:
                given = Allowance(tool=approval["tool"], args=args, free=free, words=words)
                self.paper.put(Line("note", f"from now on nobody is asked about {given.text}"))
                return decision_on(approval, "approve", always=scope, pattern=pattern)

    def _edited(
        self, value: object, check: Callable[[str], dict[str, Any]]
    ) -> dict[str, Any] | None:
        return edited_until(to_yaml(value), check, self.edit, self.paper, self.read)

    # --- A plan: it is shown with all that it brings along, and can be changed.

    def _plan(self, value: Mapping[str, Any], *, known: bool) -> dict[str, Any]:
        """Return the reply to a review. A ``known`` plan stands right above the question."""

        def check(text: str) -> dict[str, Any]:
            plan = from_yaml(text)
            read_reply(value, {"decision": "edit", "plan": plan})
            return plan

        own: dict[str, Any] = {}
        self.paper.put(*question_lines(value, known=known, checks=self.checks))
        while True:
            said = choice(_PLAN_CHOICES, self.read)
            shown = {**value, **own}
            if said == "c":
                return {"decision": "edit", "plan": own} if own else {"decision": "confirm"}
            if said == "r":
                feedback = words("What should change (empty: later)", self.read)
                return {"decision": "reject", "feedback": feedback}
            if said == "s":
                self.paper.put(*review_lines(shown, self.checks))
                continue
            phases = [{k: v for k, v in each.items() if k in FIELDS} for each in shown["phases"]]
            if changed := self._edited({"goal": shown["goal"], "phases": phases}, check):
                own = changed
                self.paper.put(Line("head", "Is this plan right?", "as you changed it"))
                self.paper.put(*review_lines({**value, **own}, self.checks))


def _recover(read: Read) -> dict[str, Any]:
    offered = {"a": "[a]pprove", "d": "[d]eny", "i": "[i]nstruct", "l": "[l]ater"}
    said = choice(offered, read)
    if said == "i":
        return {"decision": "instruct", "text": words("What to do instead (empty: later)", read)}
    if said == "a":
        return {"decision": "approve"}
    return {"decision": "deny", "reason": read(_WHY_NOT).strip()}


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
