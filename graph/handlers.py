"""The last net: what happens when a node raises something that nobody expected.

A handler has to return ``Command(goto=...)``: a plain dict would end the run silently.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from langgraph.errors import NodeError
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command

from daruma.graph.contexts import emitter
from daruma.graph.machine import ON_BUG
from daruma.state.channels import State, Update
from daruma.state.emergency import emergency_of
from daruma.state.events import TaskCompleted
from daruma.state.failure import Failure, bug_in
from daruma.state.result import TaskResult
from daruma.state.settings import Settings
from daruma.state.tool_task import Dispatch, moved
from daruma.tools.results import tool_result

Handler = Callable[[Any, NodeError, Runtime[Settings]], Coroutine[Any, Any, Command[Any]]]


def handler_for(node: str) -> Handler:
    """Return the error handler of a node."""

    async def handle(
        state: State | Dispatch, error: NodeError, runtime: Runtime[Settings]
    ) -> Command[Any]:
        update = _update(node, state, bug_in(node, error.error))
        if result := update.get("result"):
            ended = TaskCompleted(task_id=result.task_id, status="failed", output=result.output)
            emitter(runtime)(ended)
        return Command(goto=ON_BUG[node], update=dict(update))

    return handle


def _update(node: str, state: State | Dispatch, failure: Failure) -> Update:
    if isinstance(state, Dispatch):
        answer = tool_result(state.call, f"Error: {failure.message}", ok=False)
        return {"messages": [answer], "calls": moved(state.call, "failed")}
    first = state.origin or state.failure or failure
    if ON_BUG[node] == END:
        return {"result": _bare_result(state, failure)}
    if node == "emergency":
        return {"failure": failure, "error": emergency_of(first)}
    if node == "rollback":  # what it left behind is not known: nothing may be built on it
        return {"failure": replace(failure, code="rollback_failed")}
    if node == "intake":  # what it found is that of the task before
        return {"failure": failure, "origin": failure, "plan": None, "verification": None}
    return {"failure": failure, "origin": first}


def _bare_result(state: State, failure: Failure) -> TaskResult:
    """The result of a task whose result could not be built: nothing but the truth about that."""
    error = state.error or emergency_of(failure)
    return TaskResult(
        task_id=state.task_id,
        status="failed",
        output=f"The task ended as failed: {error.message}",
        error_message=error.to_error_message(),
        error_struct=error,
        budgets={},
        usage={},
        timings={},
    )
