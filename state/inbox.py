"""A question in the form that chat clients render: LangChain's request for a human in the loop.

It stands beside our own form of the question, and says the same: what was shown is what runs.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NotRequired

from typing_extensions import TypedDict

Allowed = Literal["approve", "edit", "reject", "respond"]


class ActionRequest(TypedDict):
    """One thing that a person decides on; ``description`` is all that was to be said about it."""

    name: str
    args: dict[str, Any]
    description: str


class ReviewConfig(TypedDict):
    """What may be decided about the actions of one name."""

    action_name: str
    allowed_decisions: list[Allowed]


class Inbox(TypedDict):
    """The keys that the inbox of a chat client looks for."""

    action_requests: NotRequired[list[ActionRequest]]
    review_configs: NotRequired[list[ReviewConfig]]


PLAN: Final = "plan"
RECOVERY: Final = "recovery"
ANSWER: Final = "answer"


def inbox_of(question: Mapping[str, Any]) -> Inbox:
    """Return a question of ours as an inbox shows it; nothing for one that is not ours."""
    form = _FORMS.get(str(question.get("type")))
    if form is None:
        return Inbox()
    requests, allowed = form(question)
    names = dict.fromkeys(request["name"] for request in requests)
    configs = [ReviewConfig(action_name=name, allowed_decisions=[*allowed]) for name in names]
    return Inbox(action_requests=requests, review_configs=configs)


_Form = tuple[list[ActionRequest], tuple[Allowed, ...]]


def _plan(question: Mapping[str, Any]) -> _Form:
    titles = (f"{at}. {each['title']}" for at, each in enumerate(question["phases"], 1))
    said = f"Is this plan to be carried out?\n\n{question['goal']}\n\n" + "\n".join(titles)
    args = {"goal": question["goal"], "phases": question["phases"]}
    return [ActionRequest(name=PLAN, args=args, description=said)], ("approve", "edit", "reject")


def _approvals(question: Mapping[str, Any]) -> _Form:
    requests = [
        ActionRequest(name=each["tool"], args=each["args"], description=_described(each))
        for each in question["approvals"]
    ]
    return requests, ("approve", "edit", "reject")


def _described(approval: Mapping[str, Any]) -> str:
    """Tell all that the approval rests on, as it stands in the approval itself."""
    lines = [
        f"Is {approval['tool']} to run exactly this?",
        *(f"Look closely: {warning}" for warning in approval["warnings"]),
        approval["shown"],
        f"Why it is asked: {approval['reason']}" if approval["reason"] else "",
        f"Folder: {approval['cwd']}" if approval.get("cwd") else "",
        f"Sandbox: {approval['sandbox']}",
        f"Not covered: {', '.join(approval['not_covered'])}" if approval["not_covered"] else "",
        "It is required: the task ends without it." if approval["deny_effect"] == "block" else "",
    ]
    return "\n\n".join(line for line in lines if line)


def _recovery(question: Mapping[str, Any]) -> _Form:
    action = question["action"]
    said = f"A step failed: {question['failure']}\n\nIs this to be done about it?\n\n"
    told = json.dumps(action, ensure_ascii=False, indent=1, default=str)
    request = ActionRequest(name=RECOVERY, args=action, description=said + told)
    return [request], ("approve", "reject", "respond")


def _question(question: Mapping[str, Any]) -> _Form:
    options = question.get("options", ())
    said = [question["question"], question["context"]]
    said += [f"Answer with one of: {', '.join(options)}"] if options else []
    request = ActionRequest(
        name=ANSWER,
        args={"answer": options[0] if options else ""},
        description="\n\n".join(part for part in said if part),
    )
    return [request], ("edit", "respond")


_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any]], _Form]]] = {
    "spec_review_request": _plan,
    "approval_request": _approvals,
    "recovery_request": _recovery,
    "question": _question,
}
