"""Approvals: what they rest on, the question, the decision, and the last look before the run."""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from langgraph.types import interrupt

from daruma.state.calls import Approval, Grounds, ToolTask, approval_of, moved
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.events import ApprovalCompleted
from daruma.state.interrupts import (
    Decision,
    Decisions,
    approval_request,
    inbox_of,
    reply_schema,
)
from daruma.state.settings.tools import Tools
from daruma.tools.calls.policy.policy import UNCONFINED, decide
from daruma.tools.calls.resolve import with_arguments
from daruma.tools.calls.tool import Tool
from daruma.tools.calls.visible import Offer
from daruma.tools.commands.command import command_environment
from daruma.tools.context import Context
from daruma.tools.errors import NotPermitted, ToolError
from daruma.tools.files.tree import tree_id
from daruma.tools.threads import in_thread

# --- Asking people: the one place where a node stops for an answer.


def asked_of_people(question: Mapping[str, Any], at: float) -> Any:
    """Ask, and return the reply once there is one; a node begins anew with it.

    The schema of a reply goes with the question, for clients that make a form of it, and so do the
    form of chat clients and when it was ``asked_at`` (Unix seconds): a reply that was sent before
    can not be meant for it.
    """
    told = {**question, "asked_at": at, **inbox_of(question)}
    return interrupt(told, response_schema=reply_schema(question))


# --- What approvals rest on: looked at when a person is asked, and again when the answer is there.

COSMETIC = frozenset({"TERM", "LANG", "LANGUAGE", "TZ", "SHELL", "USER", "LOGNAME"})
"""Variables that differ from one terminal to the next and choose no program: not part of a yes."""


async def grounds_of(
    call: ToolTask, workspace: str | None, context: Context, *, tree: str = ""
) -> Grounds:
    """Return what a call's approval rests on, with the workspace's content where that is given.

    Only Daruma's own tools work in the workspace. Raises :class:`~daruma.tools.errors.ToolError`
    for a workspace that is gone, and :class:`~daruma.tools.sandbox.sandbox.SandboxUnavailable`.
    """
    known = context.tools.named(call.name)
    if known is None or not known.builtin or workspace is None:
        return Grounds()
    if call.name != "run_command":
        return Grounds(tree=tree)
    sandbox = await context.open_sandbox()
    return Grounds(
        sandbox=sandbox.level,
        not_covered=sandbox.not_covered,
        environment=_environment(Path(workspace)),
        tree=tree,
    )


async def tree_now(workspace: str | None, context: Context) -> str:
    """Return the id of a workspace's content. Raises ``ToolError`` for one that is gone."""
    if workspace is None:
        return ""
    at = await context.surroundings(workspace)
    return await in_thread(tree_id, at.needs_workspace().root)


def _environment(root: Path) -> dict[str, str]:
    every = command_environment(os.environ, root, Path(sys.executable).parent)
    return {k: v for k, v in every.items() if k not in COSMETIC and not k.startswith("LC_")}


# --- The calls that a person is asked about, each with what its answer rests on.

UNAVAILABLE: Final = "unavailable"
"""In the place of a sandbox's level: as things stand the call could not run."""


@dataclass(frozen=True)
class OpenApproval:
    """One call, and the state of things in which it would run."""

    call: ToolTask
    workspace: str | None
    grounds: Grounds

    @property
    def approval(self) -> Approval:
        """What the person is shown."""
        return approval_of(self.call, self.workspace, self.grounds)

    @property
    def stands(self) -> bool:
        """Whether a yes that was given before, and waits for others, is one to this."""
        return bool(self.call.approved) and self.call.agreed == self.approval.digest

    def holds(self, decision: Decision) -> bool:
        """Whether a decision counts: a yes only for what would run now, a no in any case."""
        return decision.decision == "deny" or decision.digest == self.approval.digest

    def agreed(self, call: ToolTask) -> ToolTask:
        """Return the call, which may have been edited, as one that may run."""
        given = approval_of(call, self.workspace, self.grounds)
        return replace(call, status="ready", approved=given.exact, agreed=given.digest)


async def open_approvals(
    calls: Iterable[ToolTask], workspace: str | None, context: Context
) -> tuple[list[OpenApproval], dict[str, str]]:
    """Look at the calls as things stand; also return why some of them can not run at all, by id.

    A required one is asked about even so: a denial of it counts, whatever else there is.
    """
    opened: list[OpenApproval] = []
    hopeless: dict[str, str] = {}
    tree: str | None = None
    for call in calls:
        try:
            # Once for all of them: only now has the workspace to be there.
            known = context.tools.named(call.name)
            if tree is None and known is not None and known.builtin:
                tree = await tree_now(workspace, context)
            grounds = await grounds_of(call, workspace, context, tree=tree or "")
        except (ToolError, DarumaError) as error:
            if not call.required:
                hopeless[call.id] = f"not run: {error}"
                continue
            grounds = Grounds(sandbox=UNAVAILABLE)
        opened.append(OpenApproval(call, workspace, grounds))
    return opened, hopeless


# --- What becomes of a call by a person's decision on it. Pure.


def after_decision(asked: OpenApproval, decision: Decision, offer: Offer) -> ToolTask:
    """Return the call as it is after a decision; an edit that does not fit decides nothing yet."""
    if decision.decision == "deny":
        return moved(asked.call, "rejected")
    if decision.args is None:
        return asked.agreed(asked.call)
    edited = with_arguments(asked.call, decision.args, offer)
    if edited.problem:  # it is the person's mistake, not the model's: nothing is decided yet
        return replace(asked.call, reason=f"the edit can not be used: {edited.reason}")
    # What a person wrote needs no other yes, unless it became a call of another tool.
    own = edited.name == asked.call.name and edited.status != "failed"
    return asked.agreed(edited) if own else edited


def denial(decision: Decision) -> str:
    """Return what the model is told of a call that a person denied."""
    return f"A person denied this call: {decision.reason or 'no reason given'}"


def blocking(denied: Iterable[ToolTask]) -> str | None:
    """Return why denied calls stop the whole task; None where it goes on without them (TL-15)."""
    for call in denied:
        if call.required and call.deny_effect == "block":
            return f"a required approval was denied: {call.name}"
    return None


# --- Commands that no model called: a check's, a plan's. At level none they are asked about, too.


async def refusal_of_commands(
    purpose: str, commands: Iterable[str], state: State, context: Context
) -> str:
    """Return why commands of the graph's own may not run; empty where they may (SE-04, RO-04).

    Where the sandbox's level is none a person is asked about all of them in one required approval,
    each time anew: they are part of what has to be agreed to there. It goes by the workspace's
    content, as that of a call does.
    """
    task, shown = state.task, list(commands)
    if context.settings.sandbox.require != "none" or task is None or not shown:
        return ""
    call = ToolTask(
        id=f"{purpose}:{len(state.steps)}",
        message_id=task.id,
        name=purpose,
        requested_name=purpose,
        args={"commands": shown},
        reason=UNCONFINED,
        required=True,
    )
    sandbox, tree = await context.open_sandbox(), await tree_now(task.workspace, context)
    environment = _environment(Path(task.workspace or ""))
    grounds = Grounds(sandbox.level, sandbox.not_covered, environment, tree)
    asked = OpenApproval(call, task.workspace, grounds)
    question = approval_request((asked.approval,), None)
    reply = Decisions.model_validate(asked_of_people(question, context.now()))
    decision = reply.decisions[0]
    runs = decision.decision == "approve" and asked.holds(decision)
    told = decision.decision if runs or decision.decision == "deny" else "void"
    context.emit(ApprovalCompleted(approval_id=call.id, decision=told))
    if runs:
        return ""
    why = decision.reason or "no reason given"
    denied = f"a person denied it: {why}" if told == "deny" else "what was approved has changed"
    return f"the {purpose} was not run: {denied}"


# --- The last look before a call runs: it may be resumed under other rules, in another place.

CHANGED: Final = (
    "not run: what was approved is not what would run now, its folder, environment or "
    "sandbox is another; call it again to have it asked"
)


async def check_permission(
    call: ToolTask, tool: Tool, workspace: str | None, context: Context
) -> None:
    """Check that the policy lets a call run, and that it is what was approved, if it was.

    Raises :class:`~daruma.tools.errors.NotPermitted`, whose text is for the model.
    """
    unconfined = context.settings.sandbox.require == "none"
    if said := forbidden(call, tool, context.settings.tools, unconfined=unconfined):
        raise NotPermitted(said)
    if not call.approved:
        return
    grounds = await grounds_of(call, workspace, context)
    if approval_of(call, workspace, grounds).exact != call.approved:
        raise NotPermitted(CHANGED)


def forbidden(
    call: ToolTask, tool: Tool, settings: Tools, *, unconfined: bool = False
) -> str | None:
    """Return why the policy does not let a call run as it stands; None where it does."""
    decision = decide(tool, call.args, settings, unconfined=unconfined).decision
    if decision == "deny":
        return "not run: denied by policy"
    if decision == "confirm" and not call.approved:
        return "not run: a person has to approve this; call it again to have it asked"
    return None
