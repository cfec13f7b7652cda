"""What a trace says of a node, and LangChain's callbacks that say it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast
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
from typing_extensions import override

from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.plan import Assignment
from daruma.state.spending import Standing, standing
from daruma.state.task import Task

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
