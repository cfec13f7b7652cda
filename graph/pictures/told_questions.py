"""What a person was asked on the way, and what they said."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from daruma.graph.pictures.call_title import call_title, edit_diff
from daruma.graph.pictures.moment import Moment
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
    value = asked.value if isinstance(asked.value, Mapping) else {"question": repr(asked.value)}
    seconds = None if walked.until is None else walked.until - walked.superstep.at
    place = {
        "at": walked.superstep.at,
        "timed": True,
        "seconds": seconds if reply is not None else None,
        "node": next((visit.node for visit in walked.visits), ""),
        "member": member,
    }
    said = reply if isinstance(reply, Mapping) else {}
    if value.get("type") == "spec_review_request":
        yield Moment(
            kind="review",
            title=_titled("Is this plan right?", said),
            **place,
            detail=plan_text(value.get("phases", ())),
            ok=_ok(said),
            output=_words(said),
        )
    elif value.get("type") == "approval_request":
        yield from _approvals(value, said, place)
    elif value.get("type") == "recovery_request":
        action = value.get("action", {})
        yield Moment(
            kind="approval",
            title=_titled(f"May this be done: {action.get('strategy')}?", said),
            detail=f"{value.get('failure', '')}\n{action.get('reasoning', '')}".strip(),
            ok=_ok(said),
            output=_words(said),
            **place,
        )
    else:
        answer = said.get("answer") if said else reply
        yield Moment(
            kind="question",
            title=str(value.get("question", "")),
            **place,
            detail=str(value.get("context") or ""),
            output="" if answer is None else str(answer),
            note="" if answer is not None else "waits for an answer",
        )


def _approvals(
    value: Mapping[str, Any], said: Mapping[str, Any], place: dict[str, Any]
) -> Iterator[Moment]:
    decisions = {each.get("approval_id"): each for each in said.get("decisions", ())}
    for each in value.get("approvals", ()):
        decision = decisions.get(each.get("approval_id"), {})
        args = each.get("args", {})
        yield Moment(
            kind="approval",
            title=_titled(f"May this run: {call_title(each.get('tool', ''), args)}", decision),
            detail="\n".join(str(part) for part in (each.get("shown"), each.get("reason")) if part),
            output=_words(decision),
            ok=_ok(decision),
            note="; ".join(each.get("warnings", ())),
            diff=edit_diff(args),
            **place,
        )


def _titled(question: str, said: Mapping[str, Any]) -> str:
    decision = said.get("decision")
    return f"{question} {_SAID.get(decision, decision) if decision else 'waits for an answer'}"


def _ok(said: Mapping[str, Any]) -> bool | None:
    return said["decision"] in _YES if said.get("decision") else None


def _words(said: Mapping[str, Any]) -> str:
    return str(said.get("feedback") or said.get("reason") or said.get("text") or "")


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
