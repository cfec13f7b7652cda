"""A tool call of the model on its way to execution, and the approval of it by a person."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from daruma.state.record import change_record, record
from daruma.state.task import Task
from daruma.state.text import reveal_invisible, revealed_line, warnings

UNCHANGED = "daruma_unchanged"
"""The key among a result's ``additional_kwargs`` for a call that could change the workspace, and
did not."""

ALLOWED_BY = "daruma_allowed_by"
"""The key of the id of the yes that let a call run, which a person had given before (TL-25)."""

# --- A tool task: one tool call of the model on its way to execution.

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
    ``approved`` is the digest of exactly what a person agreed to, with all that it rests on.
    ``voided`` counts the answers that were given to something that has changed since, ``changes``
    says what had. ``definition`` is that of an MCP tool when its call was decided on.
    ``continues`` is the call that the user was asked about before, which this one goes on with.
    ``hooked`` is the digest of what the hooks have seen of it.
    ``masked`` says that a key stood in it, which is not stored (SE-08). A ``read_only`` command is
    run so before a person is asked about it, who is asked if that does not do. ``allowed_by`` is
    the id of the yes that a person gave before, if that is what let it run. A ``delegated`` call is
    carried out by a helper, not by the tool node.
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
    voided: int = 0
    changes: tuple[str, ...] = ()
    definition: str = ""
    missing: tuple[str, ...] = ()
    continues: str = ""
    masked: bool = False
    read_only: bool = False
    allowed_by: str = ""
    hooked: str = ""
    delegated: bool = False
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


def calls_to_run(calls: Iterable[ToolTask], *, delegated: bool = False) -> tuple[ToolTask, ...]:
    """Return what runs now: calls of the tool node, or those that helpers carry out (PL-08).

    What needs nobody goes before what was approved, whose ground it may change (TL-02).
    """
    found = [call for call in with_status(calls, "ready") if call.delegated is delegated]
    return tuple(call for call in found if not call.approved) or tuple(found)


def is_open(calls: Iterable[ToolTask]) -> bool:
    """Whether calls of an answer have still to run or to be asked about (TL-02)."""
    return any(call.status in ("ready", "awaiting") for call in calls)


def set_status(call: ToolTask, status: ToolTaskStatus) -> ToolTask:
    """Return the call with another status."""
    return change_record(call, status=status)


def await_approval(call: ToolTask, refusal: str) -> ToolTask:
    """Return a call as one that a person is asked about, as running it read-only did not do."""
    tried = f"; it was run read-only first: {refusal}" if refusal else ""
    return change_record(call, status="awaiting", read_only=False, reason=call.reason + tried)


# --- An approval: exactly what will run if a person says yes, and the digests that prove it.


@record
class Approval:
    """One open approval. An answer must name its id and digest.

    ``digest`` proves what was shown, the state of the workspace included. ``shown`` is the call
    with control, bidirectional and invisible characters spelled out; ``warnings`` says that there
    are any, and what has changed since it was asked before. ``lasting`` says that a yes can be
    given for calls to come as well.
    """

    approval_id: str
    digest: str
    tool: str
    args: dict[str, Any]
    reason: str
    required: bool
    deny_effect: Literal["block", "continue"]
    command: str | None = None
    cwd: str | None = None
    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    shown: str = ""
    warnings: tuple[str, ...] = ()
    lasting: bool = False
    schema_version: int = 1


@dataclass(frozen=True)
class Grounds:
    """What an approval rests on beside the call: how it would be confined, in what state of things.

    ``environment`` are the variables of a command, ``definition`` is that of an MCP tool, and
    ``description`` a part of it; ``tree`` is the id of the workspace's content.
    """

    sandbox: str = "none"
    not_covered: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    definition: str = ""
    description: str = ""
    tree: str = ""


def approval_of(call: ToolTask, workspace: str | None, grounds: Grounds | None = None) -> Approval:
    """Describe a call for the person who decides; the digest covers all that will run (TL-13).

    The call's place in the history is part of it: models repeat ids, and a yes is for one call.
    """
    grounds = grounds or Grounds()
    command = str(call.args.get("command")) if call.name == "run_command" else None
    within = str(call.args.get("cwd") or "")
    cwd = str(PurePath(workspace or "", within)) if command and within else workspace
    rests_on = {
        "call": call.result_id,
        "tool": call.name,
        "args": call.args,
        "cwd": cwd,
        "sandbox": grounds.sandbox,
        "not_covered": list(grounds.not_covered),
        "environment": dict(grounds.environment),
        "definition": grounds.definition,
        "tree": grounds.tree,
    }
    canonical = json.dumps(rests_on, sort_keys=True, ensure_ascii=False, default=str)
    plain = command or json.dumps(call.args, ensure_ascii=False, indent=1, default=str)
    odd = list[str]()
    for name, arg in call.args.items():
        text = arg if isinstance(arg, str) else json.dumps(arg, ensure_ascii=False, default=str)
        odd += [f"the name of an argument: {each}" for each in warnings(name)]
        odd += [f"{revealed_line(name)}: {each}" for each in warnings(text)]
    return Approval(
        approval_id=call.id,
        digest=hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(),
        tool=call.name,
        args=call.args,
        reason=call.reason,
        required=call.required,
        deny_effect=call.deny_effect,
        command=command,
        cwd=cwd,
        sandbox=grounds.sandbox,
        not_covered=grounds.not_covered,
        shown=reveal_invisible(plain),
        warnings=(*call.changes, *warnings(call.name), *odd),
        lasting=not (call.required or call.masked),
    )
