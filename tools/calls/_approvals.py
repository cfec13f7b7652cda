"""Approvals: what they rest on, the question, the decision, and the last look before the run."""

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from daruma.state.calls import (
    Allowance,
    AllowancesDamaged,
    Approval,
    Grounds,
    ToolTask,
    approval_of,
    build_allowance,
    revoked,
    with_status,
    workspace_allowances,
)
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.events import ApprovalCompleted
from daruma.state.interrupts import Decision, Decisions, approval_request, ask_person
from daruma.state.settings import Tools
from daruma.state.text import digest, revealed_line
from daruma.tools.calls._registry import Registry
from daruma.tools.calls._resolve import failed_task, with_arguments
from daruma.tools.calls._results import Outputs
from daruma.tools.calls._tool import Surroundings, Tool, VisibleTools
from daruma.tools.calls.policy._policy import REDEFINED, UNCONFINED, decide, runs_read_only
from daruma.tools.commands import command_environment
from daruma.tools.errors import GroundsChanged, NotPermitted, ToolError
from daruma.tools.files import (
    MOST_NAMED,
    Listing,
    Tree,
    Workspace,
    changes_between,
    list_tree,
    printable_path,
    tree_of,
)
from daruma.tools.sandbox import Sandbox
from daruma.tools.threads import in_thread, to_thread

# --- What approvals rest on: looked at when a person is asked, and again when the answer is there.

COSMETIC = frozenset({"TERM", "LANG", "LANGUAGE", "TZ", "SHELL", "USER", "LOGNAME"})
"""Variables that differ from one terminal to the next and choose no program: not part of a yes."""

OpenSandbox = Callable[[], Awaitable[Sandbox]]


async def grounds_of(
    call: ToolTask,
    known: Tool | None,
    workspace: str | None,
    open_sandbox: OpenSandbox,
    *,
    tree: str = "",
) -> Grounds:
    """Return what a call's approval rests on; ``tree`` is the id of the workspace's content.

    ``known`` is the tool of its name, shown or not; None where there is none any more.

    Raises :class:`~daruma.tools.errors.ToolError` for a workspace that is gone, and
    :class:`~daruma.tools.sandbox.SandboxUnavailable`.
    """
    if known is None:
        return Grounds()
    rests = Grounds(
        definition=known.definition,
        description=known.description if known.definition else "",
        tree=tree if _works_in(known, workspace) else "",
    )
    if call.name != "run_command" or workspace is None or not known.builtin:
        return rests
    sandbox = await open_sandbox()
    level, not_covered = sandbox.level, sandbox.not_covered
    environment = _environment(Path(workspace))
    return replace(rests, sandbox=level, not_covered=not_covered, environment=environment)


def _works_in(tool: Tool | None, workspace: str | None) -> bool:
    """Whether what a tool does depends on a workspace, as far as anybody knows."""
    here = tool is not None and (tool.builtin or tool.effect == "workspace")
    return here and workspace is not None


async def tree_now(workspace: str, *, named: bool = True) -> Tree:
    """Look at a workspace's content. Raises ``ToolError`` for one that is gone."""
    return await in_thread(tree_of, (await to_thread(Workspace, Path(workspace))).root, named=named)


def _environment(root: Path) -> dict[str, str]:
    every = command_environment(os.environ, root, Path(sys.executable).parent)
    return {k: v for k, v in every.items() if k not in COSMETIC and not k.startswith("LC_")}


# --- What approvals rested on is kept beside the state: what has changed since can be named.


def _ids(digest: str) -> str:
    return f"ground-{digest[:32]}"


def _digests(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: digest(value) for name, value in environment.items()}


async def changes_since(
    asked: str, now: Grounds, tree: Tree | None, outputs: Outputs
) -> tuple[str, ...]:
    """Say in a few lines what differs from what a question, by its digest, rested on (TL-13a)."""
    kept = await outputs.read(_ids(asked))
    then = json.loads(kept) if kept else None
    if then is None:
        return ("asked again, as what it rests on has changed",)
    lines = []
    if tree is not None and then["tree"] not in ("", tree.id):
        listing = await outputs.read(_ids(then["tree"]))
        before = Listing(*json.loads(listing)) if listing else None
        named = changes_between(before, tree) if before else ""
        lines.append(f"files: {named}" if named else "files of the workspace")
    if then["sandbox"] != now.sandbox or then["not_covered"] != [*now.not_covered]:
        lines.append(f"the sandbox: {now.sandbox}, not {then['sandbox']}")
    told, seen = then["environment"], _digests(now.environment)
    if names := sorted(each for each in {*told, *seen} if told.get(each) != seen.get(each)):
        more = ["more"] if len(names) > MOST_NAMED else []
        lines.append(f"variables: {', '.join([*map(printable_path, names[:MOST_NAMED]), *more])}")
    if then["definition"] != now.definition:
        lines.append(f"{REDEFINED}; it now says: {revealed_line(now.description)[:300]}")
    said = (f"asked again, since this has changed: {each}" for each in lines)
    return tuple(said) or ("asked again: it would not run as it was shown",)


MAX_VOIDED: Final = 3
"""Answers to one call that a changing workspace may void; then it fails, and is not asked again."""


def void_approval(call: ToolTask, changes: tuple[str, ...]) -> ToolTask:
    """Return a call as one that is asked about again, with what has changed."""
    return replace(call, status="awaiting", approved="", voided=call.voided + 1, changes=changes)


def endless_changes(calls: Sequence[ToolTask]) -> set[str]:
    """Return the ids of calls that are not asked about any more: what they rest on never rests.

    What an approved sibling voided does not count: one of them has run for each time.
    """
    ran = sum(bool(call.approved) and call.status not in ("ready", "awaiting") for call in calls)
    return {call.id for call in with_status(calls, "awaiting") if call.voided >= MAX_VOIDED + ran}


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

    def holds(self, decision: Decision) -> bool:
        """Whether a decision counts: a yes only for what would run now, a no in any case."""
        return decision.decision == "deny" or decision.digest == self.approval.digest

    def approve(self, call: ToolTask, allowed_by: str = "") -> ToolTask:
        """Return the call, which may have been edited, as one that may run."""
        given = approval_of(call, self.workspace, self.grounds)
        return replace(
            call, status="ready", approved=given.digest, allowed_by=allowed_by, read_only=False
        )

    def allowance(self, allowances: Iterable[Allowance]) -> Allowance | None:
        """Return what a person has said yes to before, if it covers the call (TL-25)."""
        here = _folder_of(self.workspace)
        return next((a for a in allowances if a.covers(self.call, here, self.grounds)), None)

    def always(self, decision: Decision, at: float) -> Allowance:
        """Return the yes to calls to come that a decision gives."""
        here, given = _folder_of(self.workspace), self.approval.digest
        return build_allowance(self.call, here, self.grounds, decision.pattern, given, at)


def _folder_of(workspace: str | None) -> str | None:
    return workspace and os.path.realpath(workspace)


@dataclass(frozen=True)
class Opened:
    """The calls to ask about, those that can not run at all, and the workspace's content."""

    approvals: Sequence[OpenApproval]
    failed: Sequence[ToolTask]
    tree: Tree | None
    outputs: Outputs

    async def decide(
        self, asked: OpenApproval, decision: Decision, offer: VisibleTools
    ) -> ToolTask:
        """Return the call as it is after a decision; a yes to what has changed since is void."""
        if asked.holds(decision):
            return apply_decision(asked, decision, offer)
        changes = await changes_since(decision.digest, asked.grounds, self.tree, self.outputs)
        return void_approval(asked.call, changes)


async def open_approvals(
    calls: Sequence[ToolTask],
    workspace: str | None,
    tools: Registry,
    open_sandbox: OpenSandbox,
    outputs: Outputs,
) -> Opened:
    """Look at those of an answer's calls that wait for a person, and keep what is seen.

    A required one is asked about even if it can not run: a denial of it counts, whatever else there
    is. One is not asked about any more if what it rests on never stands still.
    """
    opened: list[OpenApproval] = []
    failed: list[ToolTask] = []
    tree: Tree | None = None
    endless = endless_changes(calls)
    for call in with_status(calls, "awaiting"):
        if call.id in endless:
            why = "not run: what was approved changed again and again before it could run"
            failed.append(failed_task(call, why))
            continue
        known = tools.named(call.name)
        try:
            # Once for all of them: only now has the workspace to be there.
            if tree is None and workspace and _works_in(known, workspace):
                tree = await tree_now(workspace)
                if await outputs.read(_ids(tree.id)) is None:
                    await outputs.note(_ids(tree.id), json.dumps(list_tree(tree)))
            seen = tree.id if tree else ""
            grounds = await grounds_of(call, known, workspace, open_sandbox, tree=seen)
        except (ToolError, DarumaError) as error:
            if not call.required:
                failed.append(failed_task(call, f"not run: {error}"))
                continue
            grounds = Grounds(sandbox=UNAVAILABLE)
        opened.append(OpenApproval(call, workspace, grounds))
        told = asdict(grounds) | {"environment": _digests(grounds.environment)}
        await outputs.note(_ids(opened[-1].approval.digest), json.dumps(told))
    return Opened(opened, failed, tree, outputs)


# --- What a person has said yes to for calls to come: on the thread, and in its workspace (TL-25).


async def allowances_in_force(state: State, outputs: Outputs) -> tuple[list[Allowance], str]:
    """Return all that hold, and why those of the workspace do not, if they are damaged.

    What was given for the workspace since the thread's last step does not count yet: a node that
    begins anew with a reply has to see what it saw when it asked, else a no could be lost.
    """
    held = [each for each in state.allowances if await outputs.read(revoked(each.id)) is None]
    workspace = _folder_of(state.task.workspace) if state.task else None
    if workspace is None or not state.steps:
        return held, ""
    try:
        given = await in_thread(workspace_allowances, workspace)
    except AllowancesDamaged as damaged:
        return held, str(damaged)
    return [*held, *(each for each in given if each.at <= state.steps[-1].at)], ""


# --- What becomes of a call by a person's decision on it. Pure.


def apply_decision(asked: OpenApproval, decision: Decision, offer: VisibleTools) -> ToolTask:
    """Return the call as it is after a decision (TL-14).

    An edit that does not fit decides nothing yet.
    """
    if decision.decision == "deny":
        return replace(asked.call, status="rejected")
    if decision.args is None:
        return asked.approve(asked.call)
    edited = with_arguments(asked.call, decision.args, offer)
    if edited.problem:  # it is the person's mistake, not the model's: nothing is decided yet
        return replace(asked.call, reason=f"the edit can not be used: {edited.reason}")
    # What a person wrote needs no other yes, unless it became a call of another tool.
    own = edited.name == asked.call.name and edited.status != "failed"
    return asked.approve(edited) if own else edited


def denial_text(decision: Decision) -> str:
    """Return what the model is told of a call that a person denied."""
    return f"A person denied this call: {decision.reason or 'no reason given'}"


def blocking_denial(denied: Iterable[ToolTask]) -> str | None:
    """Return why denied calls stop the whole task; None where it goes on without them (TL-15)."""
    for call in denied:
        if call.required and call.deny_effect == "block":
            return f"a required approval was denied: {call.name}"
    return None


# --- Commands that no model called: a check's, a plan's. At level none they are asked about, too.


async def commands_refusal(
    purpose: str, commands: Iterable[str], state: State, at: Surroundings
) -> str:
    """Return why commands of the graph's own may not run; empty where they may (SE-04).

    Where the sandbox's level is none a person is asked about all of them in one required approval,
    each time anew: they are part of what has to be agreed to there. It goes by the workspace's
    content, as that of a call does.
    """
    task, shown = state.task, list(commands)
    if at.settings.sandbox.require != "none" or task is None or not shown:
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
    sandbox, here = await at.open_sandbox(), task.workspace
    tree = (await tree_now(here, named=False)).id if here else ""
    grounds = Grounds(sandbox.level, sandbox.not_covered, _environment(Path(here or "")), tree)
    asked = OpenApproval(call, task.workspace, grounds)
    question = approval_request((asked.approval,))
    reply: Decisions = ask_person(question, at.now(), at.emit)
    decision = reply.decisions[0]
    runs = decision.decision == "approve" and asked.holds(decision)
    told = decision.decision if runs or decision.decision == "deny" else "void"
    at.emit(ApprovalCompleted(approval_id=call.id, decision=told))
    if runs:
        return ""
    why = decision.reason or "no reason given"
    denied = f"a person denied it: {why}" if told == "deny" else "what was approved has changed"
    return f"the {purpose} was not run: {denied}"


# --- The last look before a call runs: it may be resumed under other rules, in another place.


async def check_permission(
    call: ToolTask, tool: Tool, workspace: str | None, at: Surroundings, tools: Registry
) -> None:
    """Check that the policy lets a call run, and that it is what was approved, if it was.

    ``at`` is what it would run with; an MCP server's tool is looked up anew in ``tools``.

    Raises :class:`~daruma.tools.errors.NotPermitted`, whose text is for the model, and
    :class:`~daruma.tools.errors.GroundsChanged` for what a person has to be asked about again
    (TL-13a, SE-06).
    """
    settings, unconfined = at.settings.tools, at.settings.sandbox.require == "none"
    said = policy_refusal(call, tool, settings, unconfined=unconfined, read_only=at.read_only)
    if said:
        raise NotPermitted(said)
    if call.definition and call.definition != tool.definition and not call.approved:
        raise GroundsChanged((f"asked, since this has changed: {REDEFINED}",))
    if not call.approved:
        return
    if tool.origin == "mcp":
        await tools.look_again(call.name)
    here = workspace if _works_in(tool, workspace) else None
    tree = await tree_now(here, named=False) if here else None
    known, seen = tools.named(call.name), tree.id if tree else ""
    grounds = await grounds_of(call, known, workspace, at.open_sandbox, tree=seen)
    if approval_of(call, workspace, grounds).digest != call.approved:
        tree = await tree_now(here) if here else None
        raise GroundsChanged(await changes_since(call.approved, grounds, tree, at.outputs))


def policy_refusal(
    call: ToolTask,
    tool: Tool,
    settings: Tools,
    *,
    unconfined: bool = False,
    read_only: bool = False,
) -> str | None:
    """Return why the policy does not let a call run as it stands; None where it does.

    ``read_only`` says that it can change nothing.
    """
    rule = decide(tool, call.args, settings, unconfined=unconfined)
    if rule.decision == "deny":
        return "not run: denied by policy"
    read_only = read_only and runs_read_only(rule, call.args, settings)
    if rule.decision == "confirm" and not (call.approved or read_only):
        return "not run: a person has to approve this; call it again to have it asked"
    return None
