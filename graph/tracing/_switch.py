"""Whether there is anything to trace for: one look, and no import, where there is not.

An application that has set up OpenTelemetry has imported its API, and named who provides traces or
metrics. Where nobody has, it is neither imported nor needed: it comes with the extra ``telemetry``.
A run that is not recorded makes no spans for its nodes, which costs each of them the look for it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.tracing._callbacks import RUN_KEY, About, traced
from daruma.tools.context import Context

if TYPE_CHECKING:
    from daruma.graph.models import Pursuit
    from daruma.graph.tracing._spans import ModelSpan, NodeSpan


_API: Final = ("opentelemetry.trace", "opentelemetry.metrics")
"""The modules of the API's own providers, which record nothing."""


def is_there() -> bool:
    """Whether anybody in this process hears what OpenTelemetry is told.

    Others import its API too, as LangChain's tracer does; what it comes with itself is deaf.
    """
    if "opentelemetry.trace" not in sys.modules:
        return False
    from opentelemetry import metrics, trace

    return _hears(type(trace.get_tracer_provider())) or _hears(type(metrics.get_meter_provider()))


@lru_cache(maxsize=16)
def _hears(provider: type) -> bool:
    return not provider.__module__.startswith(_API)


@contextmanager
def run_traced(
    config: RunnableConfig | None, snapshot: StateSnapshot | None, bound: Callbacks = None
) -> Iterator[RunnableConfig | None]:
    """Trace a run, from the state it begins with; yields the config to run the machine with.

    ``bound`` are the callbacks that the graph itself has.
    """
    given = traced(config, bound)
    if not is_there():
        yield given
        return
    from daruma.graph.tracing._spans import run_span

    with run_span(given, snapshot) as spanned:
        yield spanned


def request_traced(this: "Pursuit") -> "AbstractContextManager[ModelSpan | None]":
    """Trace one request to a model; yields what is to be told of its answer, None for nobody."""
    if not is_there():
        return nullcontext()
    from daruma.graph.tracing._spans import model_span

    return model_span(this)


def is_tracing(config: RunnableConfig) -> bool:
    """Whether the run that a node is called in is traced, and recorded."""
    return RUN_KEY in config.get("configurable", {})


@contextmanager
def node_traced(
    config: RunnableConfig, told: Callable[[], About], context: Context, *, nested: bool
) -> Iterator[tuple[Context, "NodeSpan"]]:
    """Trace a node of a run that is recorded; yields the context that it is to be called with."""
    from daruma.graph.tracing._spans import node_span

    with node_span(config.get("configurable", {})[RUN_KEY], told(), nested=nested) as span:
        yield replace(context, emit=span.heard(context.emit)), span
