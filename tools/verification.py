"""The checks that say whether the work is done, and files that others changed (RO-07)."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from daruma.state.channels import State
from daruma.state.events import VerificationStarted, WorkspaceDrifted
from daruma.state.outcome import named
from daruma.state.savepoint import MOST, Drifted
from daruma.state.task import Task
from daruma.state.verification import Verification
from daruma.tools.checks import recognised_commands, run_checks
from daruma.tools.commands.command import command_run
from daruma.tools.commands.output import live_output
from daruma.tools.context import Context
from daruma.tools.files.tree import counts
from daruma.tools.snapshots.outcome import Change, SnapshotUnavailable
from daruma.tools.snapshots.snapshots import Snapshots, around
from daruma.tools.threads import in_thread

# --- Running the checks that say whether the work is done.


async def checked(state: State, context: Context) -> Verification:
    """Run what is recognised in the workspace, and what settings and the current phase declare.

    Raises :class:`~daruma.tools.errors.ToolError`, OSError,
    :class:`~daruma.tools.sandbox.sandbox.SandboxUnavailable` and
    :class:`~daruma.tools.snapshots.outcome.SnapshotUnavailable`.
    """
    workspace = state.task.workspace if state.task else None
    why = await _why_unchecked(state, context)
    if workspace is None or why:
        context.emit(VerificationStarted(commands=()))
        return Verification(note=why)
    timeout = context.settings.verification.timeout
    opened = (await context.surroundings(workspace)).needs_workspace()
    commands = (*await recognised_commands(opened.root), *declared(state, context))
    commands = tuple(dict.fromkeys(commands))
    context.emit(VerificationStarted(commands=commands))
    if not commands:
        return Verification(note="nothing to verify: no checks are known for this workspace")
    sandbox = await context.open_sandbox()
    async with around(context.snapshots(workspace), "verification"):
        live = partial(live_output, context.emit, "verification")
        checks = await run_checks(commands, opened.root, timeout, sandbox, live)
    for check in checks:
        context.emit(command_run("verification", check))
    return Verification(checks=tuple(checks))


async def _why_unchecked(state: State, context: Context) -> str:
    """Say why there is nothing to check before anything is looked at; empty where there is.

    A task in react mode is checked only where it changed its workspace (MO-04).
    Raises :class:`~daruma.tools.snapshots.outcome.SnapshotUnavailable`.
    """
    task = state.task
    if task is None or task.workspace is None:
        return "nothing to verify: the task has no workspace"
    changed = not task.only_if_changed or await _changed(state, task, context)
    return "" if changed else "nothing to verify: the task changed no file of its workspace"


async def _changed(state: State, task: Task, context: Context) -> bool:
    own = (m for m in state.messages if str(m.id).startswith(f"{task.id}:"))
    if not any(isinstance(message, ToolMessage) for message in own):
        return False
    began = next((s for s in state.savepoints if s.task_id == task.id and s.snapshot), None)
    snapshots = context.snapshots(task.workspace)
    if snapshots is None or began is None or began.snapshot is None:
        return True  # nobody can tell: then it is checked
    taken = await in_thread(snapshots.take, "verification", by="work")
    changes = await in_thread(snapshots.changes, began.snapshot, taken.snapshot.id)
    return any(counts(each.path) for each in changes)


def declared(state: State, context: Context) -> tuple[str, ...]:
    """Return the commands that the settings and the current phase declare."""
    phase = state.plan.phase(state.plan.current) if state.plan else None
    own = (phase.validation_command,) if phase and phase.validation_command else ()
    return (*context.settings.verification.commands, *own)


# --- Drift: files of a thread's workspace that somebody else changed (RO-07).

LOOK: Final = "on going on"
"""The label of the snapshots that are taken to find drift."""

NOTE: Final = "Note: since this workspace was last looked at, somebody else changed: "


async def drift(
    task: Task | None, context: Context, known: Drifted | None = None
) -> Drifted | None:
    """Look for files that changed since the thread last worked, and tell of those not ``known``.

    What a look before found is found again, as long as no work has followed: a run that stops at a
    question, or is killed, has kept nothing of it.
    """
    snapshots = context.snapshots(task.workspace if task else None)
    if snapshots is None or task is None or task.expert:
        return None
    try:
        changes = await in_thread(_changes, snapshots)
    except SnapshotUnavailable:
        return None  # whoever needs one will say so
    told = known.paths if known and known.task_id == task.id else ()
    return drifted(task, (each for each in changes if each.path not in told), context)


def _changes(snapshots: Snapshots) -> tuple[Change, ...]:
    """Return what others changed since the last snapshot that was taken for another reason."""
    seen = [each for each in snapshots.kept() if each.by != "undo"]
    if not seen:
        return ()
    taken = snapshots.take(LOOK, by="others")
    worked = [each for each in seen if (each.label, each.by) != (LOOK, "others")]
    if not worked or worked[-1] == seen[-1]:
        return taken.changes
    return snapshots.changes(worked[-1].id, taken.snapshot.id)


def drifted(task: Task, changes: Iterable[Change], context: Context) -> Drifted | None:
    """Tell of what was changed by others, unless it comes and goes by itself, as caches do."""
    paths = tuple(each.path for each in changes if counts(each.path))
    if not paths:
        return None
    context.emit(WorkspaceDrifted(paths=paths[:MOST], total=len(paths)))
    return Drifted(task_id=task.id, paths=paths[:MOST])


def drift_note(state: State) -> list[AnyMessage]:
    """Return what a model is told of it, behind all that was said."""
    if state.drifted is None or state.drifted.task_id != state.task_id:
        return []
    return [HumanMessage(f"{NOTE}{named(state.drifted.paths)}. Look again before you rely on it.")]
