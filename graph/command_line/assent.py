"""What is agreed to without asking: the reach of ``--yes``, and how one decision is worded."""

from collections.abc import Collection, Mapping
from typing import Any

from langgraph.types import Interrupt


def decision_on(
    approval: Mapping[str, Any],
    decision: str,
    reason: str = "",
    args: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a decision that names exactly what was asked: its id and its digest (TL-13).

    A reason goes with ``deny``, new arguments go with ``edit``.
    """
    told: dict[str, Any] = {"reason": reason} if decision == "deny" else {}
    told |= {"args": dict(args)} if args is not None else {}
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
