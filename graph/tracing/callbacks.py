"""LangChain's callbacks: every run within a task says which task, node, phase and budget it is of.

A node's own run is started by LangGraph, with what was known when the graph was built. A handler
that comes before all others completes what they are told; what runs within the node inherits it.
"""

from collections.abc import Callable
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

from daruma.graph.tracing.about import About, about
from daruma.state.calls import Dispatch
from daruma.state.channels import State
from daruma.state.plan import Assignment

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
            metadata.update(about(node, inputs, member).metadata)


def is_heard(config: RunnableConfig) -> bool:
    """Whether anybody listens, in a run that LangGraph has begun: elsewhere nobody knows yet."""
    callbacks = config.get("callbacks")
    return not isinstance(callbacks, BaseCallbackManager) or bool(callbacks.handlers)


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


def inherited(config: RunnableConfig, told: Callable[[], About]) -> None:
    """Let all that runs within a node say what the node is about: requests, tools, anything."""
    manager: Any = config.get("callbacks")
    if manager is not None and getattr(manager, "handlers", None):
        manager.add_metadata(told().metadata)
