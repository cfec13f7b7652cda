"""A tool task: one tool call of the model on its way to execution."""

from collections.abc import Iterable
from typing import Any, Literal

from daruma.state.record import changed, record
from daruma.state.task import Task

ToolTaskStatus = Literal[
    "repairable", "ready", "awaiting", "lacking", "rejected", "done", "failed", "unknown"
]
NameResolution = Literal["exact", "alias", "normalized", "repaired", "unknown", "missing"]
Problem = Literal[
    "",
    "tool_not_found",
    "tool_not_in_profile",
    "invalid_json",
    "too_large",
    "cut_off",
    "invalid_args",
]


@record
class ToolTask:
    """One call. ``id`` is the model's own id of the call; results answer to it.

    Models use an id again in a later answer, so ``message_id`` says whose call this one is.
    ``ready`` may run, ``awaiting`` waits for a person, ``repairable`` has a ``problem`` that a
    model may repair, ``lacking`` lacks ``missing``, which the user is asked for once the calls
    beside it are answered; the others have their result in the history. ``unknown``: it may have
    run.
    ``repaired_by`` and ``rungs`` say how its arguments were mended.
    ``approved`` is the digest of exactly what a person agreed to, ``agreed`` that of what was shown
    with it, ``voided`` counts the answers that were given to something that has changed since.
    ``continues`` is the call that the user was asked about before, which this one goes on with.
    """

    id: str
    message_id: str
    name: str
    requested_name: str
    name_resolution: NameResolution = "exact"
    args: dict[str, Any]
    status: ToolTaskStatus = "ready"
    reason: str = ""
    required: bool = False
    deny_effect: Literal["block", "continue"] = "continue"
    problem: Problem = ""
    repaired_by: Literal["", "rules", "model"] = ""
    rungs: tuple[str, ...] = ()
    approved: str = ""
    agreed: str = ""
    voided: int = 0
    missing: tuple[str, ...] = ()
    continues: str = ""
    schema_version: int = 1

    @property
    def result_id(self) -> str:
        """The id of the message that holds this call's result."""
        return f"{self.message_id}:{self.id}"


@record
class Dispatch:
    """What the tool node is sent: one call and the task it belongs to.

    ``shown`` are whole paths from earlier results that end with the path of the call (CX-06).
    ``phase_id`` is that of the phase it belongs to, None in a task without a plan.
    """

    task: Task
    call: ToolTask
    shown: tuple[str, ...] = ()
    phase_id: str | None = None
    schema_version: int = 1


def reduce_calls(
    calls: tuple[ToolTask, ...], write: tuple[ToolTask, ...] | ToolTask
) -> tuple[ToolTask, ...]:
    """Reduce the ``calls`` channel: a tuple begins a new turn, a single task updates its own."""
    if isinstance(write, ToolTask):
        return tuple(write if call.id == write.id else call for call in calls)
    return tuple(write)


def with_status(calls: Iterable[ToolTask], status: ToolTaskStatus) -> tuple[ToolTask, ...]:
    """Return those calls that have a status, in their order."""
    return tuple(call for call in calls if call.status == status)


def moved(call: ToolTask, status: ToolTaskStatus) -> ToolTask:
    """Return the call with another status."""
    return changed(call, status=status)
