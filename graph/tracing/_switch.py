"""What LangChain's tracers are told of a run; and whether there is anything else to trace for: one
look, and no import, where there is not.

An application that has set up OpenTelemetry has imported its API, and named who provides traces or
metrics. Where nobody has, it is neither imported nor needed: it comes with the extra ``telemetry``.
A run that is not recorded makes no spans for its nodes, which costs each of them the look for it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from langchain_core.callbacks import (
    BaseCallbackHandler,
    BaseCallbackManager,
    CallbackManager,
    Callbacks,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
    merge_configs,
    var_child_runnable_config,
)
from langgraph.types import StateSnapshot
from typing_extensions import override

from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.plan import Assignment
from daruma.state.spending import Standing, standing
from daruma.state.task import Task
from daruma.tools.context import Context

if TYPE_CHECKING:
    from daruma.graph.models import Pursuit
    from daruma.graph.tracing._spans import ModelSpan, NodeSpan


# --- What a trace says of a node: whose work it is on, and how much of the budget is left. Pure.


@dataclass(frozen=True)
class About:
    """Where a run stands as a node begins; ``budgets`` holds steps (spent, allowed) by kind,
    and tokens, usd and seconds where they are limited.

    Empty texts stand for what there is none of: a phase in a task without a plan, for one.
    """

    node: str
    task_id: str = ""
    mode: str = ""
    phase: str = ""
    member: str = ""
    budgets: Standing = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        """What LangChain tracers see; every key is there, so that nothing older shines through."""
        budgets = {kind: f"{n:g}/{of:g}" for kind, (n, of) in self.budgets.items()}
        return {f"daruma_{key}": text for key, text in self._texts} | {"daruma_budget": budgets}

    @property
    def attributes(self) -> dict[str, str | float]:
        """What spans hold; of what is empty nothing."""
        told: dict[str, str | float] = {f"daruma.{key}": text for key, text in self._texts if text}
        for kind, (spent, of) in self.budgets.items():
            told |= {f"daruma.budget.{kind}.spent": spent, f"daruma.budget.{kind}.of": of}
        return told

    @property
    def _texts(self) -> list[tuple[str, str]]:
        return [(key, each) for key, each in vars(self).items() if key != "budgets"]


def trace_metadata(node: str, state: object, member: str = "") -> About:
    """Say where a run stands. ``state`` is what the node is given; an unknown kind says nothing.

    ``intake`` is told of no task: what it is given is that of the task before.
    """
    if isinstance(state, State) and state.task and node != "intake":
        phase = state.plan.current if state.plan else None
        return _about(node, state.task, phase, member, standing(state))
    if isinstance(state, Dispatch):
        return _about(node, state.task, state.phase_id, member, {})
    if isinstance(state, Assignment):
        return _about(node, state.task, state.phase.id, state.phase.id, {})
    return About(node, member=member)


def _about(node: str, task: Task, phase: str | None, member: str, budgets: Standing) -> About:
    return About(node, task.id, task.mode, phase or "", member, budgets)


# --- LangChain's callbacks: every run within a task says which task, node, phase and budget it is
# of.
#
# A node's own run is started by LangGraph, with what was known when the graph was built. A handler
# that comes before all others completes what they are told; what runs within the node inherits it.

RUN_KEY: Final = "__pregel_daruma_trace"
"""Where the trace of a run hangs on its config; known here, so that nodes need no import."""

_OURS: Final = (State, Dispatch, Assignment)
"""What our nodes are given; other graphs' nodes are none of ours."""


class NodeRuns(BaseCallbackHandler):
    """Completes the metadata of nodes' runs; within a member's machine they name the member."""

    run_inline = True

    def __hash__(self) -> int:
        """Be found first: LangChain merges handlers as sets, and a set begins with this."""
        return 0

    def __eq__(self, other: object) -> bool:
        """Be the same as any other, so that no more than one is kept."""
        return isinstance(other, NodeRuns)

    @override
    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add what is known of the state that the node is given, before others are told."""
        node = metadata and metadata.get("langgraph_node")
        if metadata and node and kwargs.get("name") == node and isinstance(inputs, _OURS):
            member = metadata.get("daruma_member", "")
            metadata.update(trace_metadata(node, inputs, member).metadata)


def traced(config: RunnableConfig | None, bound: Callbacks = None) -> RunnableConfig | None:
    """Return the config of a run whose nodes are told of, if anybody listens to its callbacks.

    ``bound`` are those of the graph itself. LangGraph puts them before a list of the run's own, and
    behind what is in a manager.
    """
    ambient = (var_child_runnable_config.get() or {}).get("callbacks")
    given = (config or {}).get("callbacks")
    heard = merge_configs(RunnableConfig(callbacks=bound), config)
    if not get_callback_manager_for_config(ensure_config(heard)).handlers:
        return config
    if isinstance(ambient, BaseCallbackManager):
        _put_first(ambient)  # in place: LangGraph takes it from there again
    if isinstance(given, BaseCallbackManager):
        given = given.copy()
        _put_first(given)
    elif bound is not None and ambient is None:
        first = [NodeRuns(), *(given or [])]
        given = CallbackManager(first, inheritable_handlers=[*first])
    elif given is not None or ambient is None:
        given = [NodeRuns(), *(given or [])]
    return cast("RunnableConfig", {**(config or {}), "callbacks": given})


def _put_first(manager: BaseCallbackManager) -> None:
    for handlers in (manager.handlers, manager.inheritable_handlers):
        if not (handlers and isinstance(handlers[0], NodeRuns)):
            handlers.insert(0, NodeRuns())


def with_trace_metadata(config: RunnableConfig, told: Callable[[], About]) -> None:
    """Let all that runs within a node say what the node is about: requests, tools, anything."""
    manager: Any = config.get("callbacks")
    if manager is not None and getattr(manager, "handlers", None):
        manager.add_metadata(told().metadata)


# --- Whether there is anything to trace for, and the spans of it where there is.

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

    with run_span(given, snapshot, RUN_KEY) as spanned:
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

    run, about = config.get("configurable", {})[RUN_KEY], told()
    with node_span(run, about.node, about.attributes, nested=nested) as span:
        yield replace(context, emit=span.heard(context.emit)), span
