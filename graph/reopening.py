"""Setting a thread back to where it failed, so that it can be gone on with from there (TL-23).

Nothing is taken out of the history: the thread goes on from a copy of an earlier point of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.types import StateSnapshot

from daruma.state import plan as phases
from daruma.state.calls import ToolTask
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.result import TaskResult
from daruma.state.settings import Settings
from daruma.state.spending import BudgetTooSmall, raised, stopped

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


def fork_of(
    history: Sequence[StateSnapshot],
    call_id: str | None = None,
    settings: Settings | None = None,
) -> Fork:
    """Find where the newest task of a thread failed, or where one of its calls did.

    ``history`` is the thread's, newest first. A model call is made again, a denied approval is
    asked for again, a call that ran and failed runs again, its siblings do not. A task whose budget
    was spent goes on under the budgets of ``settings``. Raises :class:`NothingToReopen`.
    """
    known = list(history)
    if not known:
        raise NothingToReopen("there is no such thread: nothing to try again")
    if known[0].interrupts:  # it would silently be dropped
        raise NothingToReopen("this thread waits for an answer: answer it first")
    state = State(**known[0].values)
    of_task = [past for past in known if _same_task(past, state)]
    return (
        _of_end(of_task, state, settings or Settings())
        if call_id is None
        else _of_call(of_task, call_id)
    )


def _of_end(of_task: list[StateSnapshot], state: State, settings: Settings) -> Fork:
    result = _failed_result(state)
    if is_teams(state):
        return _of_team(of_task[0], state, settings)
    if result.status == "blocked":
        return _of_block(of_task)
    if result.status == "budget_exceeded":
        return _of_budget(of_task, settings)
    node = _failed_node(state)
    for past in of_task:
        if past.next == (node,):
            return Fork(_going_on(past), None, COPY)
    raise NothingToReopen(f"what failed in {node!r} is not in this thread's history any more")


def _failed_result(state: State) -> TaskResult:
    result = state.result
    if result is None or result.completed:
        raise NothingToReopen("the newest task of this thread has not failed: nothing to try again")
    if result.status == "parked":
        raise NothingToReopen("this task asked the user: answer it with the next message")
    return result


def is_teams(state: State) -> bool:
    """Whether a task failed in phases that members carried out: each of them by itself."""
    fallen = phases.first_failed(state.plan) if state.plan else None
    return state.task is not None and state.task.mode == "team_collab" and fallen is not None


def _of_budget(of_task: list[StateSnapshot], settings: Settings) -> Fork:
    """Go on from where the budget was spent, as if the settings of today had been granted."""
    spent = [past for past in of_task if past.next == ("pause",)]
    if not spent:
        raise NothingToReopen("where the budget was spent is not in this thread's history any more")
    # What came after the stop came to nothing for it: other phases, and what checks would mend.
    past = next((each for each in spent if not stopped(State(**each.values))), spent[-1])
    try:
        values = raised(State(**past.values), settings)
    except BudgetTooSmall as error:
        raise NothingToReopen(str(error)) from None
    return Fork(_going_on(past), values, "pause")


def _of_team(past: StateSnapshot, state: State, settings: Settings) -> Fork:
    """Begin the failed phases anew; what other members have done and merged stays."""
    if state.plan is None:
        raise NothingToReopen("this task has no plan to go on with")
    cleared: dict[str, Any] = {"error": None, "failure": None, "origin": None}
    if stopped(state):
        cleared |= raised(state, settings)
    return Fork(_going_on(past), {"plan": phases.reopened(state.plan), **cleared}, "merge")


def _same_task(past: StateSnapshot, state: State) -> bool:
    task = past.values.get("task")
    return task is not None and task.id == state.task_id


def _failed_node(state: State) -> str:
    fallen = phases.first_failed(state.plan) if state.plan else None
    failure = (fallen.failure if fallen else None) or state.origin or state.failure
    return failure.node if failure else "main"


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
            if not _ended(calls[0]):
                break
            return _undone(past, calls)
    raise NothingToReopen(
        f"no call {call_id!r} of the newest task has been denied, or run and failed"
    )


def _going_on(past: StateSnapshot) -> RunnableConfig:
    # A checkpoint that is written by hand would else lack what callers noted on those before it.
    noted = {k: v for k, v in (past.metadata or {}).items() if k not in _LANGGRAPHS_OWN}
    return merge_configs(past.config, {"metadata": noted})


def _ended(call: ToolTask) -> bool:
    # A call with a problem never ran: its model was told, and has to make another.
    return call.status in ("rejected", "unknown") or (call.status == "failed" and not call.problem)


def _undone(past: StateSnapshot, calls: list[ToolTask]) -> Fork:
    again = {call.id: _again(call) for call in calls}
    known = {message.id for message in past.values["messages"]}
    results = [RemoveMessage(id=c.result_id) for c in calls if c.result_id in known]
    values = {
        "calls": tuple(again.get(call.id, call) for call in past.values["calls"]),
        "messages": results,
        "failure": None,
    }
    return Fork(_going_on(past), values, "gate")


def _again(call: ToolTask) -> ToolTask:
    asked = call.status == "rejected" or call.voided
    return replace(call, status="awaiting" if asked else "ready", voided=0)
