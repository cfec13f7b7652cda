"""Reading what an inbox replies: LangChain's decisions, turned into the reply that a question has.

An inbox names nothing of what it decides on: its decisions stand in the order of the requests. What
they are about is taken from the question itself, so the ids and digests are those that were shown.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from daruma.state.interrupts import ReplyRefused


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Approve(_Decision):
    type: Literal["approve"]


class Reject(_Decision):
    type: Literal["reject"]
    message: str | None = None


class Respond(_Decision):
    type: Literal["respond"]
    message: str = Field(pattern=r"\S")


class Action(_Decision):
    name: str
    args: dict[str, Any]


class Edit(_Decision):
    type: Literal["edit"]
    edited_action: Action


Decision = Annotated[Approve | Reject | Respond | Edit, Field(discriminator="type")]
_DECISIONS: Final = TypeAdapter(list[Decision])
_FORM: Final = '{"decisions": [{"type": "approve"}]}, one for each request, in their order'


def is_of_an_inbox(reply: object) -> bool:
    """Whether a reply has the form of an inbox: decisions that have a ``type``."""
    decisions = reply.get("decisions") if isinstance(reply, Mapping) else None
    if not isinstance(decisions, Sequence) or isinstance(decisions, str):
        return False
    return any(isinstance(each, Mapping) and "type" in each for each in decisions)


def from_inbox(question: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply that decisions of an inbox come to.

    Raises :class:`~daruma.state.interrupts.ReplyRefused`: for decisions that are none, that are
    more or fewer than the requests, or that the question does not allow.
    """
    try:
        decisions = _DECISIONS.validate_python(reply["decisions"])
    except ValidationError:
        raise ReplyRefused(f"a reply of an inbox has the form {_FORM}") from None
    requests = question.get("action_requests", ())
    if len(reply) > 1 or len(decisions) != len(requests):
        raise ReplyRefused(
            f"{len(requests)} decisions are asked for, and {len(decisions)} were given: {_FORM}"
        )
    for decision, request in zip(decisions, requests, strict=True):
        _check(decision, request, question)
    return _REPLIES[question["type"]](question, decisions)


def _check(decision: Decision, request: Mapping[str, Any], question: Mapping[str, Any]) -> None:
    allowed = {
        each["action_name"]: each["allowed_decisions"] for each in question["review_configs"]
    }[request["name"]]
    if decision.type not in allowed:
        raise ReplyRefused(f"{request['name']} can be decided by {', '.join(allowed)}")
    if isinstance(decision, Edit) and decision.edited_action.name != request["name"]:
        raise ReplyRefused(
            f"an edit keeps to {request['name']!r}, and does not make it another action"
        )


def _edited(decision: Edit, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return edited values; forms give text back for what was none."""
    shown = request["args"]
    return {
        name: _as_before(value, shown.get(name, value))
        for name, value in decision.edited_action.args.items()
    }


def _as_before(value: Any, shown: Any) -> Any:
    if not isinstance(value, str) or isinstance(shown, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _to_a_plan(question: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    (decision,) = decisions
    own = {"spec_review_id": question["spec_review_id"]}
    if isinstance(decision, Edit):
        plan = _edited(decision, question["action_requests"][0])
        return {"decision": "edit", "plan": plan, **own}
    if isinstance(decision, Reject):
        return {"decision": "reject", "feedback": decision.message or "", **own}
    return {"decision": "confirm", **own}


def _to_approvals(question: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    asked = zip(question["approvals"], question["action_requests"], decisions, strict=True)
    return {"decisions": [_to_one(*each) for each in asked]}


def _to_one(
    approval: Mapping[str, Any], request: Mapping[str, Any], decision: Decision
) -> dict[str, Any]:
    own = {"approval_id": approval["approval_id"], "digest": approval["digest"]}
    if isinstance(decision, Edit):
        return {**own, "decision": "edit", "args": _edited(decision, request)}
    if isinstance(decision, Reject):
        return {**own, "decision": "deny", "reason": decision.message or ""}
    return {**own, "decision": "approve"}


def _to_a_recovery(_: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    (decision,) = decisions
    if isinstance(decision, Respond):
        return {"decision": "instruct", "text": decision.message}
    if isinstance(decision, Reject):
        return {"decision": "deny", "reason": decision.message or ""}
    return {"decision": "approve"}


def _to_a_question(_: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    (decision,) = decisions
    if isinstance(decision, Edit):
        return {"answer": decision.edited_action.args.get("answer", "")}
    return {"answer": decision.message if isinstance(decision, Respond) else ""}


_REPLIES: Final[Mapping[str, Callable[[Mapping[str, Any], Sequence[Decision]], dict[str, Any]]]] = {
    "spec_review_request": _to_a_plan,
    "approval_request": _to_approvals,
    "recovery_request": _to_a_recovery,
    "question": _to_a_question,
}
