"""The last net: what happens when a node raises something that nobody expected.

A handler has to return ``Command(goto=...)``: a plain dict would end the run silently.
"""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import NodeError
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command

from daruma.graph.contexts import emitter
from daruma.graph.handing_over import HandingOver
from daruma.graph.machine import ON_BUG
from daruma.graph.raising import Leaving, Raised
from daruma.graph.tiers import end_with_first
from daruma.state.calls import Dispatch, moved
from daruma.state.channels import State, Update
from daruma.state.emergency import emergency_of, words_of
from daruma.state.errors import CutOff
from daruma.state.events import (
    BudgetSettled,
    ClarificationResolved,
    Event,
    MemberCompleted,
    RecoveryCompleted,
    TaskCompleted,
)
from daruma.state.failure import Failure, bug_in
from daruma.state.plan import Assignment, Report
from daruma.state.result import TaskResult
from daruma.state.settings import Settings
from daruma.state.settings.sections import FallbackChain
from daruma.tools.calls.results import tool_result

Handler = Callable[
    [Any, NodeError, Runtime[Settings], RunnableConfig], Coroutine[Any, Any, Command[Any]]
]


def error_handler(settings: Settings) -> Handler:
    """Return the error handler of all nodes; ``settings`` are the graph's, for a run without any.

    It is one for all: LangGraph adds a node and a channel for each handler, and looks at every
    channel several times in every superstep.

    With the fallback chain switched off it raises
    :class:`~daruma.graph.raising.Leaving` (EM-05), and for a run that is cut off from its storage.
    """

    async def handle(
        state: State | Dispatch | Assignment,
        error: NodeError,
        runtime: Runtime[Settings],
        config: RunnableConfig,
    ) -> Command[Any]:
        chain, raised = (runtime.context or settings).fallback_chain, Raised.of(config)
        node, failure = error.node, bug_in(error.node, error.error)
        if isinstance(error.error, BaseException):  # after a crash it is a text
            raised.note(failure, error.error)
        if not chain.enabled or isinstance(error.error, CutOff):
            raise Leaving(raised.behind(failure))
        update = _update(node, state, failure, chain)
        for event in _closing(node, update):
            emitter(runtime)(event)
        _hand_over(state, update, config)
        if update.get("result") and not chain.has_emergency:
            _end(state, failure, raised)
        return Command(goto=ON_BUG[node], update=dict(update))

    return handle


def _closing(node: str, update: Update) -> Iterator[Event]:
    """Yield what closes events that nobody else would close (PL-04)."""
    if node == "consult":
        yield RecoveryCompleted(strategy="give-up", carried="failed")
    if node == "pause":
        yield BudgetSettled(node="pause", scope="task", measure="", stopped=True)
    if node == "clarify":
        yield ClarificationResolved(how="stale", target_action="")
    if isinstance(report := update.get("reports"), Report):
        phase = report.phase
        yield MemberCompleted(phase_id=phase.id, expert=phase.expert or "", outcome="failed")
    if result := update.get("result"):
        yield TaskCompleted(task_id=result.task_id, status="failed", output=result.output)


def _hand_over(state: object, update: Update, config: RunnableConfig) -> None:
    handing, result = HandingOver.of_the_task(config), update.get("result")
    if handing and result and isinstance(state, State):
        handing.ended(state, result)


def _end(state: State | Dispatch | Assignment, failure: Failure, raised: Raised) -> None:
    if isinstance(state, State) and state.error:
        end_with_first(state, raised)
    else:
        raised.end = raised.behind(failure)


def _update(
    node: str, state: State | Dispatch | Assignment, failure: Failure, chain: FallbackChain
) -> Update:
    if not isinstance(state, State):
        return _of_one(state, failure)
    first = state.origin or state.failure or failure
    if ON_BUG[node] == END:
        return {"result": _bare_result(state, failure, chain)}
    if node == "emergency":
        return {"failure": failure, "origin": first, "error": emergency_of(first, chain)}
    if _stays_held(node, state):  # what a rollback left is not known: nothing may be built on it
        return {"failure": replace(failure, code="rollback_failed")}
    if node == "intake":  # what it found is that of the task before
        return {"failure": failure, "origin": failure, "plan": None, "verification": None}
    update: Update = {"failure": failure, "origin": first}
    cleared: dict[str, Update] = {"compress": {"crowded": None}, "pause": {"overrun": None}}
    return {**update, **cleared.get(node, {})}


def _stays_held(node: str, state: State) -> bool:
    """Whether a person has to be asked; a question that can not be asked twice is given up."""
    phase = state.plan.phase(state.plan.current) if state.plan else None
    asked = node == "hold" and state.failure is not None and state.failure.node != "hold"
    return phase is not None and phase.status == "failed" and (node == "rollback" or asked)


def _of_one(state: Dispatch | Assignment, failure: Failure) -> Update:
    """Answer for one of several that were sent out: its siblings go on."""
    if isinstance(state, Dispatch):
        answer = tool_result(state.call, f"Error: {failure.message}", ok=False)
        return {"messages": [answer], "calls": moved(state.call, "failed")}
    phase = replace(state.phase, status="failed", outcome="failed", failure=failure)
    return {"reports": Report(phase=phase)}


def _bare_result(state: State, failure: Failure, chain: FallbackChain) -> TaskResult:
    """The result of a task whose result could not be built: nothing but the truth about that."""
    error = state.error or emergency_of(failure, chain)
    return TaskResult(
        task_id=state.task_id,
        status="failed",
        output=words_of(chain).ended.format(status="failed", reason=error.message),
        error_message=error.to_error_message(),
        error_struct=error if chain.has_emergency else None,
        budgets={},
        usage={},
        timings={},
    )
