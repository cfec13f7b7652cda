"""The audit of an answer: what was changed or left out between its words and what runs. Pure."""

from collections.abc import Sequence

from daruma.state.audit import (
    MAX_NAMES,
    ArgumentRepair,
    Audit,
    LeftOut,
    NameChange,
    RepairRound,
)
from daruma.state.failover import Failover
from daruma.state.tool_task import ToolTask


def audit_of(
    message_id: str,
    tasks: Sequence[ToolTask],
    *,
    left_out: LeftOut | None = None,
    asked: RepairRound | None = None,
    failover: Failover | None = None,
) -> Audit:
    """Return what there is to tell of an answer's tasks, which may be nothing."""
    names = [_name(task) for task in tasks if _is_renamed(task)]
    arguments = [_arguments(task) for task in tasks if _is_mended(task)]
    return Audit(
        message_id=message_id,
        names=tuple(names[:MAX_NAMES]),
        names_cut=len(names) > MAX_NAMES,
        arguments=tuple(arguments),
        left_out=left_out,
        round=asked,
        failover=failover,
    )


def changes_of(
    message_id: str,
    tasks: Sequence[ToolTask],
    *,
    left_out: LeftOut | None = None,
    failover: Failover | None = None,
) -> Audit | None:
    """Return the same; None, and nothing built, where there is nothing to tell: most answers."""
    told = left_out or failover or any(_is_renamed(each) or _is_mended(each) for each in tasks)
    return audit_of(message_id, tasks, left_out=left_out, failover=failover) if told else None


def call_audit(failover: Failover | None) -> Audit | None:
    """Return the audit of a call without tools; None where the first request brought the answer."""
    return Audit(message_id="", failover=failover) if failover else None


def _is_renamed(task: ToolTask) -> bool:
    return task.name != task.requested_name


def _is_mended(task: ToolTask) -> bool:
    return bool(task.repaired_by or task.rungs)


def _name(task: ToolTask) -> NameChange:
    # A tool may have passed the call on to another one; the name itself was right then.
    how = "promoted" if task.name_resolution == "exact" else task.name_resolution
    return NameChange(
        tool_call_id=task.id, requested_name=task.requested_name, name=task.name, how=how
    )


def _arguments(task: ToolTask) -> ArgumentRepair:
    by = task.repaired_by or "rules"
    return ArgumentRepair(tool_call_id=task.id, name=task.name, repaired_by=by, rungs=task.rungs)
