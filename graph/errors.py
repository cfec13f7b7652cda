"""How failures leave the machine, and which errors a run can end with.

    DarumaError                  one clear line for a person
    ├── RequestRefused           what was given can not be run; nothing has changed
    │   ├── NoSuchThread         there is nothing of that name to go on with
    │   └── NotNow               it does not fit how the thread stands
    ├── ReplyRefused             an answer that does not fit its question
    │   └── AnsweredAlready      one reply counts, the first
    ├── SettingsError            settings that can not be used
    ├── PartRefused              what a graph can not be built of
    ├── ModelError               a model that can not be made, or gave no usable answer
    │   └── ModelUnavailable
    ├── Busy                     somebody else is at work there
    │   ├── ThreadBusy
    │   └── WorkspaceBusy
    ├── CutOff                   a run that can not be written down, and so must not go on
    │   ├── StorageUnavailable
    │   └── HoldLost
    ├── DamagedState             what is stored can not be read
    ├── NothingToReopen, UndoRefused, NothingToSee, NotFollowed     of a thread's history
    ├── LeftBehind, OwnLoop      of event loops
    └── TaskFailed               a task's failure without an exception of its own
    GraphBubbleUp                LangGraph's: passes its error handlers
    └── ExitRun                  carries an exception out of the graph

What a node raises goes to its error handler, which turns it into a ``Failure`` in the state
(``build.py``). An exception is what the run ends with only where settings switch off what comes
after a failure (EM-05), for a cancellation (EM-02), and for a run that is cut off from its storage.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from daruma.nodes.emergency import first_failure
from daruma.state.channels import State, Update
from daruma.state.errors import CutOff
from daruma.state.failure import Code, Failure, ModelFailed, TaskFailed
from daruma.tools.context import Context

# --- Exceptions that leave the machine as they are: cancellations, and failures without a fallback.
#
# LangGraph takes what a node raises to the node's error handler, and remembers that it did; what is
# cancelled within a node too. Only a ``GraphBubbleUp`` passes: the thread then stays before its
# node, and going on runs that node again.

_KEPT = 64
"""Exceptions that one run keeps at a time; more have no use, a task fails once."""


class ExitRun(GraphBubbleUp):
    """Carries an exception out of the graph, past the error handlers."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Failures:
    """The exceptions behind the failures of one run, for as long as that run lasts.

    ``end`` is the exception that the run is to end with, once the graph has come to its end.
    """

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], BaseException] = {}
        self.end: BaseException | None = None

    def note(self, failure: Failure, error: BaseException) -> None:
        """Keep the exception behind a failure, in place of the oldest one where there are many.

        Of equal failures the first one's counts (EM-04).
        """
        self._errors.setdefault((failure.node, failure.message), error)
        if len(self._errors) > _KEPT:
            del self._errors[next(iter(self._errors))]

    def exception_for(self, failure: Failure) -> BaseException:
        """Return the exception behind a failure, a provider's own where it was one.

        A :class:`~daruma.state.failure.TaskFailed` stands for one that never was, or is gone.
        """
        error = self._errors.get((failure.node, failure.message))
        return original(error) if error else TaskFailed(failure)

    def end_with_first(self, state: State) -> None:
        """Let a failed task end with the exception behind its first failure, if there was one."""
        failure = first_failure(state) if state.error else None
        if failure and failure.was_raised:
            self.end = self.exception_for(failure)

    @contextmanager
    def noted_exit(self) -> Iterator[None]:
        """Keep what leaves the graph while the parts of a run are read: it is what it ends with."""
        try:
            yield
        except ExitRun as leaving:
            self.end = leaving.error

    def raise_end(self) -> None:
        """Raise what the run ends with: outside of any ``except``, so that it shows its own chain.

        Nothing is kept of the run from then on.
        """
        error, self.end = self.end, None
        self._errors.clear()
        try:
            if error:
                raise error
        finally:
            del error  # else it would hold itself by its traceback


def closing(parts: AsyncIterator[Any]) -> "aclosing[Any]":
    """Close a run's parts with whoever reads them, which ends the run."""
    return aclosing(cast("AsyncGenerator[Any, None]", parts))


def original(error: BaseException) -> BaseException:
    """Return the provider's own exception behind a model's failure; any other as it is."""
    return (error.__cause__ or error) if isinstance(error, ModelFailed) else error


# --- The tiers behind a failure, where settings switch them off (EM-05).
#
# With the whole chain off, a failure leaves the machine at once, from the node it happened in. With
# emergency off it is recovered from as ever, and the run then ends with the exception.

Node = Callable[[Any, Context], Coroutine[Any, Any, Update]]

_ENDINGS: frozenset[Code] = frozenset(
    {
        "bad_request",
        "plan_refused",
        "plan_rejected",
        "plan_contradicted",
        "approval_denied",
        "rollback_failed",
        "budget_exceeded",
        "structured_output_invalid",
        "stopped",
    }
)
"""What a task ends with by its own rules: a result under any settings."""


async def run_node(node: Node, state: Any, context: Context, failures: Failures) -> Update:
    """Run a node. What is cancelled from within it leaves the machine, as a cancellation (EM-02).

    So does that the run is cut off from what it is written down in (DU-04). Raises
    :class:`~daruma.graph.errors.ExitRun`, and what the node raises.
    """
    chain = context.settings.fallback_chain
    try:
        update = await node(state, context)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # raised by the work, and not asked for
            raise ExitRun(error) from None
        raise
    except GraphBubbleUp:
        raise
    except Exception as error:
        if chain.enabled and not isinstance(error, CutOff):
            raise
        raise ExitRun(original(error)) from None
    if chain.has_emergency:
        return update
    failure = update.get("failure")
    if failure and not chain.enabled and failure.code not in _ENDINGS:
        raise ExitRun(failures.exception_for(failure))
    if update.get("result"):
        failures.end_with_first(state)
    return update
