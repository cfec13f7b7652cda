"""All that goes round LangGraph's and LangChain's public API: what each trick buys, and its end.

The tricks change how long a step takes and nothing else. They are off with ``DARUMA_FAST_PATH=0``,
and by themselves on a version of LangGraph or langchain-core that they were not tested with. What
stands before them are names of LangGraph's that have no public form; these are always in use.
"""

import asyncio
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final, cast

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackManager,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langchain_core.utils.uuid import uuid7
from langgraph._internal._config import ensure_config as ensure_run_config
from langgraph._internal._config import patch_config
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_DURABILITY,
)
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph.graph._branch import BranchSpec
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite
from typing_extensions import override

from daruma.state.channels import State, apply_update, state_of
from daruma.tools.calls import OriginalMethods

TESTED_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "langgraph": ("1.2.",),
    "langchain-core": ("1.7.", "1.8."),
}
"""How versions begin that the machine's tests have run with."""

SWITCH: Final = "DARUMA_FAST_PATH"


def is_on() -> bool:
    """Whether the tricks are in use, for a graph that is built or a request that is made."""
    return os.environ.get(SWITCH, "1") != "0" and _is_tested()


@cache
def _is_tested() -> bool:
    return all(version(name).startswith(known) for name, known in TESTED_WITH.items())


# --- A run as part of another graph's: a node of that one, or called in one (FA-08).
#
# LangGraph then takes the saver that the other graph lends, whatever the graph itself was built
# with. A config that names a thread of its own begins a run of its own, wherever that is.
# Needless once LangGraph tells a graph that it is run within another one.


SAVER_KEY: Final = CONFIG_KEY_CHECKPOINTER
"""What LangGraph keeps a run with, by this key of ``configurable``; None where nothing is kept."""


def is_within(config: RunnableConfig | None) -> bool:
    """Whether a config is that of a part of another graph's run, or of that part's state."""
    given = _around(config)
    return SAVER_KEY in given and bool(given.get(CONFIG_KEY_CHECKPOINT_NS))


def durability_within(config: RunnableConfig | None) -> Any:
    """Return how durable a run within another graph's is: as that one asks, else each step.

    None where nothing is kept.
    """
    given = _around(config)
    return given.get(CONFIG_KEY_DURABILITY, "sync") if given.get(SAVER_KEY) else None


def saver_around(config: RunnableConfig | None) -> Any:
    """Return the checkpointer that a run was given, or that a graph around it lends."""
    return _around(config).get(SAVER_KEY)


def with_saver(config: RunnableConfig | None, saver: Any) -> RunnableConfig:
    """Return a config whose run, or whose state, is kept by a checkpointer."""
    given = config or RunnableConfig()
    configurable = {**given.get("configurable", {}), SAVER_KEY: saver}
    return RunnableConfig(**{**given, "configurable": configurable})


def _around(config: RunnableConfig | None) -> dict[str, Any]:
    return ensure_run_config(config).get("configurable", {})


def has_listeners(config: RunnableConfig) -> bool:
    """Whether anybody listens, in a run that LangGraph has begun: elsewhere nobody knows yet."""
    callbacks = config.get("callbacks")
    return not isinstance(callbacks, BaseCallbackManager) or bool(callbacks.handlers)


# --- The conditional edges of the machine. Buys 15 % of a step without a saver.
#
# LangGraph's own read the state for a router from a copy of every channel. Our routers are pure,
# and so are our reducers: what the node returned is applied to what it was given.
# Needless once a branch can be given the state that its node was given, and the update.


class Branch(BranchSpec):
    """A branch whose route is told to tracers only if somebody listens."""

    @override
    async def _aroute(self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any) -> Any:
        path: Any = self.path
        # Callers of ``update_state`` may write in forms of LangGraph's that no node of ours does.
        known = isinstance(input, dict) and not any(
            isinstance(v, Overwrite) for v in input.values()
        )
        state = apply_update(reader(config, fresh=False), input) if known else reader(config)
        told = has_listeners(config)
        result = await (path.ainvoke(state, config) if told else path.afunc(state))
        return self._finish(writer, input, result, config)


def add_branch(
    graph: Any, source: str, route: Callable[[State], Any], ends: Mapping[Hashable, str]
) -> None:
    """Add conditional edges to a graph that is not compiled yet, named as their route is."""

    async def routed(state: Any) -> Any:
        return route(state)

    name = route.__name__
    path: Any = RunnableCallable(None, routed, name=name) if is_on() else routed
    routed.__name__ = name
    graph.add_conditional_edges(source, path, dict(ends))
    if is_on():
        graph.branches[source][name] = Branch(*graph.branches[source][name])


# --- A node and its writers in one run. Buys 13 % of a step without a saver.
#
# LangGraph's own works out whom to tell of the node where nobody listens, and has a task for it
# and one to tell that it has ended. That is half of what a step does to the event loop.
# Needless once LangGraph tells nobody of a node where nobody listens.

_FIRST: Final = "seq:step:1"
"""LangGraph's tag for what runs within the node of such a sequence."""


class NodeRun(RunnableSeq):
    """LangGraph's sequence, but for a run that nobody listens to."""

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        if config is None or has_listeners(config):
            return await super().ainvoke(input, config, **given)
        manager = config.get("callbacks")
        if isinstance(manager, BaseCallbackManager):  # made for this run, by LangGraph
            manager.tags = [*manager.inheritable_tags, _FIRST]
        config = patch_config(config, callbacks=manager)
        token = var_child_runnable_config.set(config)
        try:
            output = await self.steps[0].ainvoke(input, config, **given)
        finally:
            var_child_runnable_config.reset(token)
        for write in self.steps[1:]:
            output = await write.ainvoke(output, config)
        return output


def run_quietly(compiled: CompiledStateGraph[Any, Any, Any, Any], names: Iterable[str]) -> None:
    """Have nodes of a compiled graph run so. Where LangGraph makes one anew, it runs as ever.

    What they are given is made by us, too: LangGraph's way sets each of many fields by itself.
    """
    for part in (compiled.nodes[name] for name in names if is_on()):
        if isinstance(part.mapper, partial) and part.mapper.args == (State,):
            part.mapper = state_of
        stock = part.node
        if isinstance(stock, RunnableSeq):
            part.node = NodeRun(*stock.steps, name=stock.name, trace_policy=stock.trace_policy)


# --- A request that nobody listens to goes to the model. Buys 8 % of a step.
#
# For listeners LangChain looks at every message of a request twice, and puts all settings of the
# model together. That is more than a superstep takes, and grows with each step of a thread.
# Needless once ``ainvoke`` does so only where somebody listens.

_ASKED: Final = OriginalMethods(BaseChatModel, "ainvoke")
_BETWEEN: Final = OriginalMethods(
    BaseChatModel, "_convert_input", "agenerate_prompt", "agenerate", "_agenerate_with_cache"
)
"""What stands between a caller and the model's own function."""

_FOR_LISTENERS: Final = frozenset(
    {"callbacks", "tags", "metadata", "run_name", "run_id"}
    | {"ls_structured_output_format", "structured_output_format"}
)
"""Options that LangChain keeps for itself."""


async def ask_unheard(
    model: Any,
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    options: Mapping[str, Any],
    asked: OriginalMethods = _ASKED,
) -> AIMessage | None:
    """Return a model's answer; None where somebody listens, or stands between it and its caller.

    ``asked`` are the functions that a caller may use, where these are known to add nothing.
    """
    plain = _ASKED.of(model) or (asked.of(model) and _ASKED.of(BaseChatModel))
    if not (is_on() and plain and _BETWEEN.of(model) and _FOR_LISTENERS.isdisjoint(options)):
        return None
    config = ensure_config(config)
    manager = AsyncCallbackManager.configure(
        config.get("callbacks"),
        model.callbacks,
        model.verbose,
        config.get("tags"),
        model.tags,
        config.get("metadata"),
        model.metadata,
    )
    if manager.handlers:  # of the run around it, the model, the process or the environment
        return None
    run = AsyncCallbackManagerForLLMRun(
        run_id=config.get("run_id") or uuid7(),
        handlers=[],
        inheritable_handlers=[],
        parent_run_id=manager.parent_run_id,
        tags=manager.tags,
        inheritable_tags=manager.inheritable_tags,
        metadata=manager.metadata,
        inheritable_metadata=manager.inheritable_metadata,
    )
    # A list of its own: some models change what they are given. A task of its own, as in LangChain:
    # some cancel the one they are in, or make something else of being cancelled.
    answer = model._agenerate_with_cache(list(messages), run_manager=run, **options)
    result: Any = (await asyncio.gather(answer, return_exceptions=True))[0]
    if isinstance(result, BaseException):
        raise result
    return cast(AIMessage, result.generations[0].message)  # as LangChain has it
