"""A question that a turn ended with, and what is to be done once it is answered (CO-01)."""

from dataclasses import field, replace
from typing import Any, Final, Literal

from daruma.state.record import record

ClarificationStatus = Literal["open", "resumed", "tried", "completed", "stale", "given_up"]

MOST_ASKED: Final = 3
"""Times that the same is asked for; then the task ends, honestly failed."""


@record
class Clarification:
    """A call that lacks what only the user can say, with what is known of its arguments.

    ``owning_agent`` is the expert whose call it is, or main; ``owning_sub_commander`` the team's
    template. ``partial_args`` are canonical. ``open`` waits for the user; ``resumed`` was answered,
    and the call is to come, or was ``tried``; the others are past. ``goal`` is what the task was,
    ``asked`` counts how often the user was asked, ``also`` are further calls of the same answer
    that lack something, ``extra`` is what a snapshot of an older kind held beside this.
    """

    task_id: str = ""
    call_id: str = ""
    owning_agent: str = "main"
    owning_sub_commander: str = ""
    target_action: str = ""
    question: str = ""
    partial_args: dict[str, Any] = field(default_factory=dict)
    missing_fields: tuple[str, ...] = ()
    status: ClarificationStatus = "open"
    goal: str = ""
    asked: int = 1
    also: tuple["Clarification", ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values; ``also`` and ``extra`` only where there is something in them."""
        plain = {
            "owning_agent": self.owning_agent,
            "owning_sub_commander": self.owning_sub_commander,
            "target_action": self.target_action,
            "question": self.question,
            "partial_args": self.partial_args,
            "missing_fields": list(self.missing_fields),
            "status": self.status,
        }
        also = {"also": [each.to_dict() for each in self.also]} if self.also else {}
        return {**plain, **also, **({"extra": self.extra} if self.extra else {})}


def each_of(clarification: Clarification | None) -> tuple[Clarification, ...]:
    """Return a clarification and those beside it, each alone."""
    if clarification is None:
        return ()
    return (replace(clarification, also=()), *clarification.also)


def joined(parts: tuple[Clarification, ...]) -> Clarification | None:
    """Return several as one, the first with the others beside it; None for none."""
    return replace(parts[0], also=parts[1:]) if parts else None


def with_status(
    clarification: Clarification, status: ClarificationStatus, **changes: Any
) -> Clarification:
    """Return it, and those beside it, with another status."""
    also = tuple(replace(each, status=status) for each in clarification.also)
    return replace(clarification, status=status, also=also, **changes)
