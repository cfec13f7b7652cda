"""What a person was asked on the way, and what they said."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph.types import Interrupt

from daruma.graph.pictures.call_title import call_title, edit_diff
from daruma.graph.pictures.moment import Kind, Moment
from daruma.graph.pictures.superstep import Walked

_YES = frozenset({"confirm", "approve", "edit"})
_SAID = {
    "confirm": "confirmed",
    "reject": "rejected",
    "edit": "edited",
    "park": "parked",
    "approve": "approved",
    "deny": "denied",
    "instruct": "other instructions given",
}


def question_moments(walked: Walked, opened: frozenset[str], member: str) -> Iterator[Moment]:
    """Yield the questions that a superstep asked; ``opened`` are the ids of those still open."""
    replies = _replies(walked)
    nodes = {visit.node for visit in walked.visits}
    for each in walked.superstep.written:
        for asked in each.value if each.channel == "__interrupt__" else ():
            if nodes == {"member"} or not isinstance(asked, Interrupt):
                continue  # the member's own record tells it
            reply = None if asked.id in opened else replies.get(each.task)
            yield from _asked(asked, reply, walked, member)


def _replies(walked: Walked) -> Mapping[str, Any]:
    """Return the last reply to each task: it is to the last question."""
    found = [each for each in walked.superstep.written if each.channel == "__resume__"]
    lists = {
        each.task: each.value if isinstance(each.value, list) else [each.value] for each in found
    }
    return {task: replies[-1] for task, replies in lists.items() if replies}


def _asked(asked: Interrupt, reply: Any, walked: Walked, member: str) -> Iterator[Moment]:
    value: Mapping[str, Any] = (
        asked.value if isinstance(asked.value, Mapping) else {"question": repr(asked.value)}
    )
    until = walked.until if reply is not None else None
    for moment in _told(value, reply):
        yield replace(
            moment,
            at=walked.superstep.at,
            timed=True,
            seconds=None if until is None else until - walked.superstep.at,
            node=next((visit.node for visit in walked.visits), ""),
            member=member,
        )


def _told(value: Mapping[str, Any], reply: Any) -> Iterator[Moment]:
    said: Mapping[str, Any] = reply if isinstance(reply, Mapping) else {}
    kind = value.get("type")
    if kind == "approval_request":
        decisions = {each.get("approval_id"): each for each in said.get("decisions", ())}
        for each in value.get("approvals", ()):
            yield _approval(each, decisions.get(each.get("approval_id"), {}))
    elif kind == "spec_review_request":
        plan = plan_text(value.get("phases", ()))
        yield _decided("review", "Is this plan right?", plan, said)
    elif kind == "recovery_request":
        action: Mapping[str, Any] = value.get("action", {})
        about = (str(value.get("failure", "")), str(action.get("reasoning", "")))
        detail = "\n".join(each for each in about if each)
        yield _decided("approval", f"May this be done: {action.get('strategy')}?", detail, said)
    else:
        yield _question(value, said.get("answer") if said else reply)


def _question(value: Mapping[str, Any], answer: Any) -> Moment:
    return Moment(
        kind="question",
        title=str(value.get("question", "")),
        detail=str(value.get("context") or ""),
        output="" if answer is None else str(answer),
        note="" if answer is not None else "waits for an answer",
    )


def _approval(asked: Mapping[str, Any], decision: Mapping[str, Any]) -> Moment:
    args = asked.get("args", {})
    title = f"May this run: {call_title(asked.get('tool', ''), args)}"
    detail = "\n".join(str(part) for part in (asked.get("shown"), asked.get("reason")) if part)
    moment = _decided("approval", title, detail, decision)
    return replace(moment, note="; ".join(asked.get("warnings", ())), diff=edit_diff(args))


def _decided(kind: Kind, question: str, detail: str, said: Mapping[str, Any]) -> Moment:
    decision = said.get("decision")
    told = _SAID.get(str(decision), str(decision)) if decision else "waits for an answer"
    return Moment(
        kind=kind,
        title=f"{question} {told}",
        detail=detail,
        output=str(said.get("feedback") or said.get("reason") or said.get("text") or ""),
        ok=decision in _YES if decision else None,
    )


def plan_text(phases: Sequence[Mapping[str, Any]]) -> str:
    """Return the phases of a plan as lines."""
    lines = []
    for number, phase in enumerate(phases, 1):
        after = ", ".join(phase.get("depends_on", ()))
        who = f" ({phase['expert']})" if phase.get("expert") else ""
        lines.append(
            f"{number}. {phase.get('title', '')}{who}" + (f", after {after}" if after else "")
        )
        if phase.get("instructions"):
            lines.append(f"   {phase['instructions']}")
    return "\n".join(lines)
