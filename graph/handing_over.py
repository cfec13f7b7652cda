"""Handing a run's task to evolution once the run is over, whichever way it ended (EV-01)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.store.base import BaseStore

from daruma.graph.members import Member
from daruma.graph.of_a_run import OfARun
from daruma.state.channels import State
from daruma.state.errors import Busy, CutOff, DamagedState
from daruma.state.failure import TaskFailed, bug_in
from daruma.state.result import TaskResult
from daruma.state.settings import Settings
from daruma.state.task import Status
from daruma.tools.context import Context

_LATER = (GraphBubbleUp, CutOff, Busy, DamagedState)
"""What leaves a thread to be gone on with, and says nothing of its task."""


@dataclass(frozen=True)
class Ended:
    """A task that is over, under the settings of its run; ``store`` is where experience goes.

    One whose thread is not ``remembered`` has an id that others have, too: each is the first.
    """

    state: State
    status: Status
    settings: Settings
    store: BaseStore | None
    remembered: bool = True


@dataclass(frozen=True)
class _Call:
    """A node, and what it was called with."""

    node: str
    state: State
    settings: Settings
    store: BaseStore | None


class HandingOver(OfARun):
    """What one run has come to, for as long as it lasts; then it is handed over, at most once."""

    def __init__(self, hand_over: Callable[[Ended], None], *, remembered: bool = True) -> None:
        self._hand_over, self._remembered = hand_over, remembered
        self._newest: _Call | None = None
        self._status: Status | None = None
        self._earlier: str | None = None
        self._waits = False

    @classmethod
    def of_the_task(cls, config: RunnableConfig) -> "HandingOver | None":
        """Return that of the run which a node is called in; None for a node of a member's."""
        return None if Member.found_in(config) else cls.found_in(config)

    def entered(self, node: str, state: object, context: Context) -> None:
        """Note that a node is called: whatever had ended goes on."""
        if not isinstance(state, State):  # one of several that were sent out
            return
        if node == "intake":  # the task that it finds is the one before
            self._earlier = state.task.id if state.task else None
        begun = state.task is not None and state.task.id != self._earlier
        self._newest = _Call(node, state, context.settings, context.store) if begun else None
        self._status = None

    def waits(self) -> None:
        """Note that a node asks a person: who reads no further then has not broken anything off."""
        self._waits = True

    def ended(self, state: State, result: TaskResult) -> None:
        """Note the result that a task ends with, unless another node is called after it."""
        if self._newest and state.task_id == result.task_id:
            self._status = result.status

    @contextmanager
    def after(self) -> Iterator[None]:
        """Hand the run's task over once its parts were read, or whoever read them went away."""
        try:
            yield
        except BaseException as error:
            self._end(error)
            raise
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        """Hand over what has a result, or was broken off; not what waits, or can be gone on with.

        What is raised after the result, as settings may ask for, is the same ending told again.
        """
        newest, status = self._newest, self._status
        self._newest = self._status = None
        if newest is None or self._waits or isinstance(error, _LATER):
            return
        state = newest.state
        if status is None and error is not None:
            status = "failed" if isinstance(error, Exception) else "cancelled"
            state = _failed(newest, error) if isinstance(error, Exception) else state
        if status:
            kept = self._remembered
            self._hand_over(Ended(state, status, newest.settings, newest.store, kept))


def _failed(newest: _Call, error: Exception) -> State:
    """Return a task's state with the failure that it left the machine by."""
    if newest.state.failure:
        return newest.state
    failure = error.failure if isinstance(error, TaskFailed) else bug_in(newest.node, error)
    return replace(newest.state, failure=failure, origin=newest.state.origin or failure)
