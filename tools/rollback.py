"""Savepoints, undoing a failed phase, and files that others changed meanwhile (RO-07)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.events import SavepointWritten, WorkspaceDrifted
from daruma.state.outcome import join_paths
from daruma.state.plan import Phase
from daruma.state.savepoint import MOST, Drifted, Savepoint, When, savepoint_id
from daruma.state.task import Task
from daruma.state.verification import Check
from daruma.tools.commands import (
    CommandResult,
    command_run,
    kill_reason,
    live_output,
    recorded_output,
)
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.files import is_lasting
from daruma.tools.sandbox import sandbox_hint
from daruma.tools.snapshots import (
    Change,
    ChangedBy,
    Snapshots,
    SnapshotUnavailable,
    snapshot_before,
    work_once,
)
from daruma.tools.threads import in_thread

# --- Writing savepoints: the workspace as it is, under a name that a thread can go back to.

OFF: Final = "no snapshot: rollback.snapshots is off"


@dataclass(frozen=True)
class Written:
    """What a node adds to the savepoints, and what has changed since the thread last looked."""

    savepoints: list[Savepoint]
    changes: tuple[Change, ...] = ()

    @property
    def missing(self) -> str:
        """Why there is no snapshot; empty where there is one, or no workspace."""
        return next((each.note for each in self.savepoints if each.snapshot is None), "")


async def write_savepoint(
    task: Task | None,
    when: When,
    context: Context,
    *,
    phase_id: str | None = None,
    by: ChangedBy = "work",
    note: str = "",
    undo: str | None = None,
) -> Written:
    """Take a snapshot of a task's workspace and name it; a task without one has no savepoints.

    Where none can be taken the savepoint says so, and the work goes on.
    """
    if task is None or task.workspace is None:
        return Written([])
    id_, snapshots = savepoint_id(task.id, phase_id, when), context.snapshots(task.workspace)
    found, missing, changes = None, OFF, tuple[Change, ...]()
    if snapshots:
        try:
            taken = await in_thread(snapshots.take, f"savepoint {id_}", by=by, fresh=when == "task")
            found, missing, changes = taken.snapshot.id, "", taken.changes
        except SnapshotUnavailable as error:
            missing = str(error)
    said = "; ".join(each for each in (missing, note) if each)
    context.emit(SavepointWritten(savepoint_id=id_, snapshot=found, note=said))
    savepoint = Savepoint(
        id=id_,
        task_id=task.id,
        phase_id=phase_id,
        when=when,
        workspace=task.workspace,
        snapshot=found,
        note=said,
        undo=undo,
        at=context.now(),
    )
    return Written([savepoint], changes)


def start_of(state: State, phase_id: str) -> Savepoint | None:
    """Return the savepoint that was written before a phase of the task at hand began."""
    id_ = savepoint_id(state.task_id, phase_id, "phase")
    return next((each for each in reversed(state.savepoints) if each.id == id_), None)


# --- Undoing a failed phase: by its own command, by the snapshot from before it, or by both.


class RollbackFailed(DarumaError):
    """Raised when a phase could not be undone; ``undo`` is the snapshot from before the try.

    ``run`` is its rollback command's, if that was run.
    """

    def __init__(self, message: str, undo: str | None = None, run: Check | None = None) -> None:
        super().__init__(message)
        self.undo = undo
        self.run = run


@dataclass(frozen=True)
class RolledBack:
    """A phase that was undone.

    ``exact`` says whether the files are as they were before the phase, None if nobody can tell;
    ``left`` are those that are not, ``undo`` the snapshot that holds what was undone; ``run`` is
    its rollback command's, if it has one.
    """

    exact: bool | None = None
    left: tuple[str, ...] = ()
    undo: str | None = None
    run: Check | None = None

    @property
    def note(self) -> str:
        """What a reader must know of it; empty where all is as it was."""
        if self.exact is not False:
            return ""
        recall = f" (`daruma undo THREAD --to {self.undo}` brings back what was there before it)"
        return f"its rollback left files not as they were before: {join_paths(self.left)}{recall}"


async def validate(phase: Phase, state: State, context: Context) -> Check | None:
    """Run the validation command of a failed phase: if that passes, nothing has to be undone.

    None without such a command. One that can not be run has not passed.
    """
    command, snapshots = phase.validation_command, _snapshots(state, context)
    if command is None:
        return None
    try:
        result, _ = await _run("validation", command, phase, state, context, snapshots)
    except (ToolError, DarumaError, OSError) as error:
        return Check(command=command, passed=False, exit_code=None, note=f"not run: {error}")
    return result


async def roll_back(phase: Phase, state: State, context: Context) -> RolledBack:
    """Undo a phase. Raises :class:`RollbackFailed`, and what commands and snapshots raise."""
    snapshots, start = _snapshots(state, context), start_of(state, phase.id)
    undo, run = None, None
    if command := phase.rollback_command:
        run, undo = await _run("rollback", command, phase, state, context, snapshots)
        if not run.passed:
            how = "timed out" if run.timed_out else f"exit {run.exit_code}"
            why = f"{command!r} failed ({how}): {run.output[-500:]}"
            raise RollbackFailed(why, undo, run)
    if phase.rollback == "snapshot":
        return replace(await _put_back(phase, state, snapshots, start), run=run)
    if snapshots is None or start is None or start.snapshot is None:
        return RolledBack(undo=undo, run=run)
    changes = await in_thread(snapshots.changes, start.snapshot)
    return RolledBack(not changes, tuple(each.path for each in changes), undo, run)


async def _put_back(
    phase: Phase, state: State, snapshots: Snapshots | None, start: Savepoint | None
) -> RolledBack:
    if snapshots is None or start is None or start.snapshot is None:
        why = f": {start.note}" if start and start.note else ""
        raise SnapshotUnavailable(f"there is no snapshot from before phase {phase.id!r}{why}")
    before = await snapshot_before(snapshots, f"putting back {_this_time(phase, state)}")
    restored = await in_thread(snapshots.restore, start.snapshot, last="work", by="work")
    if not restored.exact:
        paths = join_paths(restored.left)
        raise RollbackFailed(f"these are not as they were before: {paths}", before.snapshot.id)
    return RolledBack(exact=True, undo=before.snapshot.id)


async def _run(
    purpose: str,
    command: str,
    phase: Phase,
    state: State,
    context: Context,
    snapshots: Snapshots | None,
) -> tuple[Check, str | None]:
    """Run a command of the plan in the workspace, within its time, and tell of it (RO-04).

    Return how it went, and the snapshot from before it.
    """
    workspace = state.task.workspace if state.task else None
    opened = (await context.surroundings(workspace)).needs_workspace()
    sandbox = await context.open_sandbox()

    async def run() -> CommandResult:
        timeout = context.settings.rollback.default_timeout
        live = live_output(context.emit, purpose, command)
        return await sandbox.run(command, workspace=opened.root, timeout=timeout, live=live)

    if snapshots is None:
        result, before = await run(), None
    else:
        what = f"{purpose} of {_this_time(phase, state)}"
        result, snapshot = await work_once(snapshots, what, run)
        before = snapshot.id
    check = _recorded(result)
    context.emit(command_run(purpose, check))
    return check, before


def _recorded(result: CommandResult) -> Check:
    """Return a command's run as it stays on record (VE-10)."""
    return Check(
        command=result.command,
        passed=result.passed,
        exit_code=result.exit_code,
        note=kill_reason(result),
        output=recorded_output(result.stdout, result.stderr, sandbox_hint(result)),
        stdout=recorded_output(result.stdout),
        stderr=recorded_output(result.stderr),
        timed_out=result.timed_out,
        seconds=result.seconds,
        sandbox=result.sandbox,
        not_covered=result.not_covered,
        stopped_by=result.stopped_by,
    )


def _this_time(phase: Phase, state: State) -> str:
    """Name one try to undo a phase: on a fork, another one has come as many steps."""
    steps = state.steps
    return f"{phase.id} #{len(steps)}" + (f" at {steps[-1].at}" if steps else "")


def _snapshots(state: State, context: Context) -> Snapshots | None:
    return context.snapshots(state.task.workspace if state.task else None)


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
    return drift_update(task, (each for each in changes if each.path not in told), context)


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


def drift_update(task: Task, changes: Iterable[Change], context: Context) -> Drifted | None:
    """Tell of what was changed by others, unless it comes and goes by itself, as caches do."""
    paths = tuple(each.path for each in changes if is_lasting(each.path))
    if not paths:
        return None
    context.emit(WorkspaceDrifted(paths=paths[:MOST], total=len(paths)))
    return Drifted(task_id=task.id, paths=paths[:MOST])


def drift_note(state: State) -> list[AnyMessage]:
    """Return what a model is told of it, behind all that was said."""
    if state.drifted is None or state.drifted.task_id != state.task_id:
        return []
    return [
        HumanMessage(f"{NOTE}{join_paths(state.drifted.paths)}. Look again before you rely on it.")
    ]
