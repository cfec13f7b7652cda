"""Setting a thread back: where it failed, and its files at any savepoint (TL-23, RO-07)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.types import StateSnapshot

from daruma.graph.requests import thread_id_of
from daruma.state import plan as phases
from daruma.state.calls import ToolTask
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.plan import first_failed
from daruma.state.savepoint import Savepoint, latest, newest_of_each, savepoint_id
from daruma.state.settings import Settings
from daruma.state.spending import BudgetTooSmall, is_stopped, raised_limits
from daruma.tools.files import workspace_locked
from daruma.tools.snapshots import Conflicts, Restored, Snapshots, Store, store_of

# --- The checkpoint that a run goes on from: a thread's newest one, or another that was asked for.

_POINTS = ("checkpoint_id", "checkpoint_map")


def newest(config: RunnableConfig | None) -> RunnableConfig:
    """Return the config of a thread without any checkpoint of it."""
    given = dict((config or {}).get("configurable", {}))
    return RunnableConfig(configurable={k: v for k, v in given.items() if k not in _POINTS})


def start_of(config: RunnableConfig) -> tuple[str, str] | None:
    """Return the thread and the checkpoint that was asked for; None for the newest one."""
    given = config.get("configurable", {})
    if given.get("checkpoint_ns") or not given.get("checkpoint_id"):
        return None
    return str(given["thread_id"]), str(given["checkpoint_id"])


def without_start(config: RunnableConfig | None) -> RunnableConfig:
    """Return the whole config of a run that goes on from the newest checkpoint."""
    return (config or RunnableConfig()) | newest(config)


# --- Setting a thread back to where it failed, so that it can be gone on with from there (TL-23).
#
# Nothing is taken out of the history: the thread goes on from a copy of an earlier point of it.

_LANGGRAPHS_OWN = frozenset(CheckpointMetadata.__annotations__)
COPY = "__copy__"
"""LangGraph's name for a checkpoint that is made anew just as it was."""


class NothingToReopen(DarumaError):
    """Raised for a thread, or a call, that has not failed; nothing on the thread has changed."""


@dataclass(frozen=True)
class Fork:
    """From which checkpoint a thread goes on, as if which node had written what."""

    config: RunnableConfig
    values: dict[str, Any] | None
    as_node: str

    def before(self, history: Sequence[StateSnapshot]) -> Sequence[AnyMessage]:
        """Return the messages that the thread goes on from."""
        at = self.config["configurable"]["checkpoint_id"]
        points = (p for p in history if p.config["configurable"]["checkpoint_id"] == at)
        return list(next(points).values.get("messages", ()))


def fork_of(
    history: Sequence[StateSnapshot],
    call_id: str | None = None,
    settings: Settings | None = None,
    at: float = 0.0,
) -> Fork:
    """Find where the newest task of a thread failed, or where one of its calls did.

    ``history`` is the thread's, newest first. A model call is made again, a denied approval is
    asked for again, a call that ran and failed runs again, its siblings do not. A task whose budget
    was spent goes on under the budgets of ``settings``, from the time ``at``.

    Raises :class:`NothingToReopen`.
    """
    known = list(history)
    if not known:
        raise NothingToReopen("there is no such thread: nothing to try again")
    if known[0].interrupts:  # it would silently be dropped
        raise NothingToReopen("this thread waits for an answer: answer it first")
    state = State(**known[0].values)
    tasks = [past.values.get("task") for past in known]
    of_task = [p for p, task in zip(known, tasks, strict=True) if task and task.id == state.task_id]
    return (
        _of_end(of_task, state, settings or Settings(), at)
        if call_id is None
        else _of_call(of_task, call_id)
    )


def _of_end(of_task: list[StateSnapshot], state: State, settings: Settings, at: float) -> Fork:
    result = state.result
    if result is None or result.completed:
        raise NothingToReopen("the newest task of this thread has not failed: nothing to try again")
    if result.status == "parked":
        raise NothingToReopen("this task asked the user: answer it with the next message")
    if is_teams(state):
        return _of_team(of_task[0], state, settings, at)
    if result.status == "blocked":
        return _of_block(of_task)
    if result.status == "budget_exceeded":
        return _of_budget(of_task, settings, at)
    fallen = phases.first_failed(state.plan) if state.plan else None
    failure = (fallen.failure if fallen else None) or state.origin or state.failure
    node = failure.node if failure else "main"
    for past in of_task:
        if past.next == (node,):
            return Fork(_going_on(past), None, COPY)
    raise NothingToReopen(f"what failed in {node!r} is not in this thread's history any more")


def is_teams(state: State) -> bool:
    """Whether a task failed in phases that members carried out: each of them by itself."""
    fallen = phases.first_failed(state.plan) if state.plan else None
    return state.task is not None and state.task.mode == "team_collab" and fallen is not None


def _of_budget(of_task: list[StateSnapshot], settings: Settings, at: float) -> Fork:
    """Go on from where the budget was spent, as if the settings of today had been granted."""
    spent = [past for past in of_task if past.next == ("pause",)]
    if not spent:
        raise NothingToReopen("where the budget was spent is not in this thread's history any more")
    # What came after the stop came to nothing for it: other phases, and what checks would mend.
    past = next((each for each in spent if not is_stopped(State(**each.values))), spent[-1])
    try:
        values = raised_limits(State(**past.values), settings, at)
    except BudgetTooSmall as error:
        raise NothingToReopen(str(error)) from None
    return Fork(_going_on(past), values, "pause")


def _of_team(past: StateSnapshot, state: State, settings: Settings, at: float) -> Fork:
    """Begin the failed phases anew; what other members have done and merged stays."""
    if state.plan is None:
        raise NothingToReopen("this task has no plan to go on with")
    cleared: dict[str, Any] = {"error": None, "failure": None, "origin": None}
    if is_stopped(state):
        cleared |= raised_limits(state, settings, at)
    return Fork(_going_on(past), {"plan": phases.reopen_failed(state.plan), **cleared}, "merge")


def _of_block(of_task: list[StateSnapshot]) -> Fork:
    for past in of_task:
        denied = [c for c in past.values.get("calls", ()) if c.status == "rejected" and c.required]
        if past.next == ("settle",) and denied:
            return _undone(past, denied)
    raise NothingToReopen("the denied approval is not in this thread's history any more")


def _of_call(of_task: list[StateSnapshot], call_id: str) -> Fork:
    for past in of_task:
        calls = [call for call in past.values.get("calls", ()) if call.id == call_id]
        if calls and past.next in (("main",), ("settle",)):
            # A call with a problem never ran: its model was told, and has to make another.
            ran = calls[0].status == "failed" and not calls[0].problem
            if not ran and calls[0].status not in ("rejected", "unknown"):
                break
            return _undone(past, calls)
    raise NothingToReopen(
        f"no call {call_id!r} of the newest task has been denied, or run and failed"
    )


def _going_on(past: StateSnapshot) -> RunnableConfig:
    # A checkpoint that is written by hand would else lack what callers noted on those before it.
    noted = {k: v for k, v in (past.metadata or {}).items() if k not in _LANGGRAPHS_OWN}
    return merge_configs(past.config, {"metadata": noted})


def _undone(past: StateSnapshot, calls: list[ToolTask]) -> Fork:
    asked = {call.id for call in calls if call.status == "rejected" or call.voided}
    again = {
        call.id: replace(call, status="awaiting" if call.id in asked else "ready", voided=0)
        for call in calls
    }
    known = {message.id for message in past.values["messages"]}
    results = [RemoveMessage(id=c.result_id) for c in calls if c.result_id in known]
    values = {
        "calls": tuple(again.get(call.id, call) for call in past.values["calls"]),
        "messages": results,
        "failure": None,
    }
    return Fork(_going_on(past), values, "gate")


# --- Putting a thread's workspace back (RO-07): which state is meant, and whether it can be had.
#
# The state of the thread stays as it is: the next run on it reports that the files have changed.


class UndoRefused(DarumaError):
    """Raised when there is no such state to go back to; nothing has changed."""


@dataclass(frozen=True)
class Place:
    """A state that a workspace can be put back to: one of a thread's snapshots of it.

    ``savepoint`` is the one that names the snapshot, if any does.
    """

    thread: str
    workspace: str
    snapshot: str
    savepoint: Savepoint | None = None


def savepoints_of(past: StateSnapshot) -> tuple[Savepoint, ...]:
    """Return the savepoints of a thread, oldest first; of one that was taken again, the last.

    Raises :class:`UndoRefused` where there is no such thread.
    """
    return newest_of_each(_state(past).savepoints)


def restore_files(
    past: StateSnapshot,
    to: str | None,
    conflicts: Conflicts,
    *,
    thread: str = "",
    travelled: bool = False,
) -> Restored:
    """Put the workspace of a thread back, where all is there for it; blocks.

    ``thread`` is the name that its snapshots are kept under, where it has another one; ``to`` that
    of a savepoint or a snapshot; None means the start of the newest task or, for one who
    ``travelled`` back to a checkpoint, the newest savepoint of that. Raises :class:`UndoRefused`,
    :class:`~daruma.tools.snapshots.RestoreRefused` for conflicts,
    :class:`~daruma.tools.snapshots.SnapshotUnavailable`, and
    :class:`~daruma.state.errors.WorkspaceBusy`.
    """
    place = place_of(past, to, thread=thread, travelled=travelled)
    with workspace_locked(place.workspace):  # that of a savepoint may not be the newest task's
        kept = snapshots_of(place.workspace, place.thread)
        return kept.restore(place.snapshot, conflicts=conflicts)


def place_of(
    past: StateSnapshot, to: str | None, *, thread: str = "", travelled: bool = False
) -> Place:
    """Return the state that is meant; blocks. Raises :class:`UndoRefused`."""
    state, thread = _state(past), thread or thread_id_of(past)
    if to is None:
        return _of_savepoint(_expected(state, travelled=travelled), thread)
    if found := latest(state.savepoints, to):
        return _of_savepoint(found, thread)
    own = [state.task.workspace] if state.task and state.task.workspace else []
    for workspace in dict.fromkeys([*own, *(at.workspace for at in reversed(state.savepoints))]):
        if to in _kept(workspace, thread):
            return Place(thread, workspace, to)
    near = get_close_matches(to, [each.id for each in state.savepoints], n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    missing = f"no savepoint or snapshot {to!r} is on this machine"
    raise UndoRefused(f"{missing}; {meant}{_there_are(state.savepoints)}")


def restore_failed_files(past: StateSnapshot, thread: str) -> Restored | None:
    """Put the files of a failed task back to how they were when its first phase failed; blocks.

    So that what is tried again meets the files it knows: what was rolled back since is there again,
    what later phases did is not. What somebody else changed is kept. None where nothing is known of
    them, as on another machine, and for a team, whose failed work never came into the workspace.
    """
    state = _state(past)
    fallen = first_failed(state.plan) if state.plan and not is_teams(state) else None
    id_ = savepoint_id(state.task_id, fallen.id, "done") if fallen else ""
    done = latest(state.savepoints, id_)
    then = (done.undo or done.snapshot) if done else None
    if done is None or then is None or not Path(done.workspace).is_dir():
        return None
    if then not in _kept(done.workspace, thread):
        return None
    return snapshots_of(done.workspace, thread).restore(then, conflicts="keep")


def snapshots_of(workspace: str, thread: str) -> Snapshots:
    """Return the snapshots that a thread has of a workspace.

    What they leave alone was settled when they were taken.
    """
    return Snapshots(Path(workspace), thread, Store(store_of(Path(workspace))))


def _state(past: StateSnapshot) -> State:
    if past.created_at is None:
        asked = past.config.get("configurable", {}).get("checkpoint_id")
        what = f"checkpoint {asked!r} on thread" if asked else "thread"
        raise UndoRefused(f"there is no {what} {thread_id_of(past)!r}")
    return State(**past.values)


def _expected(state: State, *, travelled: bool) -> Savepoint:
    """Return the savepoint that is meant where none is named."""
    if state.task is None or state.task.workspace is None:
        raise UndoRefused("the newest task of this thread has no workspace: name a savepoint")
    if travelled:
        of_it = [each for each in state.savepoints if each.workspace == state.task.workspace]
        found = of_it[-1] if of_it else None
        missing = "no savepoint had been taken by that checkpoint"
    else:
        found = latest(state.savepoints, savepoint_id(state.task.id, None, "task"))
        missing = f"no savepoint was taken when task {state.task.id} began"
    if found is None:
        raise UndoRefused(f"{missing}; {_there_are(state.savepoints)}")
    return found


def _of_savepoint(savepoint: Savepoint, thread: str) -> Place:
    if savepoint.snapshot is None:
        raise UndoRefused(
            f"savepoint {savepoint.id!r} can not be gone back to: "
            + (savepoint.note or "it has no snapshot")
        )
    if not Path(savepoint.workspace).is_dir():
        raise UndoRefused(
            f"the workspace {savepoint.workspace} is not there: make the folder, or undo on the "
            "machine that has it"
        )
    if savepoint.snapshot not in _kept(savepoint.workspace, thread):
        raise UndoRefused(
            f"snapshot {savepoint.snapshot} of savepoint {savepoint.id!r} is not on this machine: "
            "it was taken on another, or deleted after rollback.keep_days"
        )
    return Place(thread, savepoint.workspace, savepoint.snapshot, savepoint)


def _kept(workspace: str, thread: str) -> frozenset[str]:
    if not store_of(Path(workspace)).exists():
        return frozenset()  # looking for it would make it
    return frozenset(each.id for each in snapshots_of(workspace, thread).kept())


def _there_are(savepoints: Sequence[Savepoint]) -> str:
    names = list(dict.fromkeys(each.id for each in savepoints))
    more = f" and {len(names) - 20} earlier ones" if len(names) > 20 else ""
    return f"there are: {', '.join(names[-20:])}{more}" if names else "this thread has none"
