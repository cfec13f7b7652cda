"""Exceptions that leave the machine as they are: cancellations, and failures without a fallback.

LangGraph takes what a node raises to the node's error handler, and remembers that it did; what is
cancelled within a node too. Only a ``GraphBubbleUp`` passes: the thread then stays before its node,
and going on runs that node again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from daruma.graph.of_a_run import OfARun
from daruma.state.failure import Failure, ModelFailed, TaskFailed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

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
