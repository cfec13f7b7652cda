"""Failures that leave the machine, and the tiers behind a failure (EM-05)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from daruma.graph.scope import OfARun
from daruma.nodes.emergency import first_failure
from daruma.state.channels import State, Update
from daruma.state.errors import CutOff
from daruma.state.failure import Code, Failure, ModelFailed, TaskFailed, failure_of
from daruma.tools.context import Answer, Ask, Context

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


# --- Exceptions that leave the machine as they are: cancellations, and failures without a fallback.
#
# LangGraph takes what a node raises to the node's error handler, and remembers that it did; what is
# cancelled within a node too. Only a ``GraphBubbleUp`` passes: the thread then stays before its
# node, and going on runs that node again.

_KEPT = 64
"""Exceptions that one run keeps at a time; more have no use, a task fails once."""


class Leaving(GraphBubbleUp):
    """Carries an exception out of the graph, past the error handlers."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Raised(OfARun):
    """What was raised in one run, for as long as that run lasts.

    ``end`` is the exception that the run is to end with, once the graph has come to its end.
    """

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], BaseException] = {}
        self.end: BaseException | None = None

    @classmethod
    def of(cls, config: RunnableConfig) -> "Raised":
        """Return that of the run which a node is called in; a new one outside of any."""
        return cls.found_in(config) or cls()

    def note(self, failure: Failure, error: BaseException) -> None:
        """Keep the exception behind a failure, in place of the oldest one where there are many.

        Of equal failures the first one's counts (EM-04).
        """
        self._errors.setdefault((failure.node, failure.message), error)
        if len(self._errors) > _KEPT:
            del self._errors[next(iter(self._errors))]

    def behind(self, failure: Failure) -> BaseException:
        """Return the exception behind a failure, a provider's own where it was one.

        A :class:`~daruma.state.failure.TaskFailed` stands for one that never was, or is gone.
        """
        error = self._errors.get((failure.node, failure.message))
        return original(error) if error else TaskFailed(failure)

    @contextmanager
    def noted_leaving(self) -> Iterator[None]:
        """Keep what leaves the graph while the parts of a run are read: it is what it ends with."""
        try:
            yield
        except Leaving as leaving:
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


def cancelled_from_within() -> bool:
    """Whether a cancellation that is being handled was raised by the work, and not asked for."""
    task = asyncio.current_task()
    return task is None or not task.cancelling()


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
        "approval_denied",
        "rollback_failed",
        "budget_exceeded",
    }
)
"""What a task ends with by its own rules: a result under any settings."""


async def run_node(node: Node, state: Any, context: Context, raised: Raised) -> Update:
    """Run a node. What is cancelled from within it leaves the machine, as a cancellation (EM-02).

    So does that the run is cut off from what it is written down in (DU-04).

    Raises :class:`~daruma.graph.errors.Leaving`, and what the node raises.
    """
    chain = context.settings.fallback_chain
    update = await _run(node, state, context)
    if chain.has_emergency:
        return update
    failure = update.get("failure")
    if failure and not chain.enabled and failure.code not in _ENDINGS:
        raise Leaving(raised.behind(failure))
    if update.get("result"):
        end_with_first(state, raised)
    return update


async def _run(node: Node, state: Any, context: Context) -> Update:
    try:
        return await node(state, context)
    except asyncio.CancelledError as error:
        if cancelled_from_within():
            raise Leaving(error) from None
        raise
    except GraphBubbleUp:
        raise
    except Exception as error:
        if context.settings.fallback_chain.enabled and not isinstance(error, CutOff):
            raise
        raise Leaving(original(error)) from None


def end_with_first(state: State, raised: Raised) -> None:
    """Let a failed task end with the exception behind its first failure, if there was one."""
    failure = first_failure(state) if state.error else None
    if failure and failure.was_raised:
        raised.end = raised.behind(failure)


@dataclass(frozen=True)
class Noting:
    """An :class:`~daruma.tools.context.Ask` that notes the exceptions behind its failures."""

    ask: Ask
    raised: Raised

    async def __call__(self, node: str, messages: Sequence[BaseMessage], **options: Any) -> Answer:
        """Ask. Raises :class:`~daruma.state.failure.ModelFailed`."""
        try:
            return await self.ask(node, messages, **options)
        except ModelFailed as error:
            self.raised.note(failure_of(error, node), error)
            raise
