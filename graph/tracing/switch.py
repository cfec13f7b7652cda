"""Whether there is anything to trace for: one look, and no import, where there is not.

An application that has set up OpenTelemetry has imported its API. Where nobody has, it is neither
imported nor needed: it comes with the extra ``telemetry``. Without an SDK a run's span records
nothing; then its nodes make no spans, which costs each of them the look for it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.tracing.about import About
from daruma.graph.tracing.callbacks import traced
from daruma.tools.context import Context

if TYPE_CHECKING:
    from daruma.graph.pursuit import Pursuit
    from daruma.graph.tracing.model_span import ModelSpan
    from daruma.graph.tracing.node_span import NodeSpan

_RUN: Final = "__pregel_daruma_RunTrace"
"""Where the trace of a run hangs on its config; known here, so that nodes need no import."""


def is_there() -> bool:
    """Whether anything in this process has imported OpenTelemetry's API."""
    return "opentelemetry.trace" in sys.modules


@contextmanager
def run_traced(
    config: RunnableConfig | None, snapshot: StateSnapshot | None
) -> Iterator[RunnableConfig | None]:
    """Trace a run, from the state it begins with; yields the config to run the machine with."""
    given = traced(config)
    if not is_there():
        yield given
        return
    from daruma.graph.tracing.run_span import run_span

    with run_span(given, snapshot) as spanned:
        yield spanned


@contextmanager
def request_traced(this: "Pursuit") -> Iterator["ModelSpan | None"]:
    """Trace one request to a model; yields what is to be told of its answer, None for nobody."""
    if not is_there():
        yield None
        return
    from daruma.graph.tracing.model_span import model_span

    with model_span(this) as span:
        yield span


@contextmanager
def node_traced(
    config: RunnableConfig, told: Callable[[], About], context: Context, *, nested: bool
) -> Iterator[tuple[Context, "NodeSpan | None"]]:
    """Trace a node of a run that is traced; yields the context that it is to be called with."""
    run = config.get("configurable", {}).get(_RUN)
    if run is None:
        yield context, None
        return
    from daruma.graph.tracing.node_span import node_span

    with node_span(run, told(), nested=nested) as span:
        yield replace(context, emit=span.heard(context.emit)), span
