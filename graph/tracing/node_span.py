"""The span of a node, and what happens within it: tools, commands and checks, from its events."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt
from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from daruma.graph.tracing.about import About
from daruma.graph.tracing.endings import ended_with, failed
from daruma.graph.tracing.happenings import Happenings
from daruma.graph.tracing.run_span import SCOPE, RunTrace
from daruma.state.channels import Update
from daruma.state.events import Event


class NodeSpan:
    """What a node's span is told while the node runs."""

    def __init__(self, span: Span, run: RunTrace) -> None:
        self._span, self._run = span, run
        self._within = Happenings(span)

    def heard(self, emit: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return what sends events on, and turns those that say so into spans and attributes."""

        def hear(event: Event) -> None:
            emit(event)
            self._within.hear(event)

        return hear

    def returned(self, update: Update, state: object) -> None:
        """Take down what the node came to; a failure is one that was not there before."""
        self._run.noticed(update)
        failure = update.get("failure")
        if failure and failure != getattr(state, "failure", None):
            failed(self._span, failure.code, failure.message)

    def stopped(self, error: BaseException | None) -> None:
        """End what is still open within the node, and say what the node ended with."""
        self._within.close(error)
        ended_with(self._span, error)


@contextmanager
def node_span(run: RunTrace, told: About, *, nested: bool) -> Iterator[NodeSpan]:
    """Trace a node, under the run; in a member's machine (``nested``) under the member's node."""
    parent: Context = otel.get_current() if nested else run.context
    span = trace.get_tracer(SCOPE).start_span(told.node, parent, attributes=told.attributes)
    node, error = NodeSpan(span, run), None
    token: Any = otel.attach(trace.set_span_in_context(span, otel.get_current()))
    try:
        yield node
    except BaseException as raised:
        error = raised
        _noticed(run, raised)
        raise
    finally:
        node.stopped(error)
        span.end()
        otel.detach(token)


def _noticed(run: RunTrace, error: BaseException) -> None:
    run.interrupted = run.interrupted or isinstance(error, GraphInterrupt)
    if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
        run.bug = type(error).__name__
