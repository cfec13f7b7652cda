"""A node and its writers in one run, which tracers are told of if there are any.

LangGraph's own is told to nobody, too: it works out what to tell, and has a task to tell that the
run has ended and one for the node. That is half of what a step does to the event loop.
"""

from collections.abc import Iterable
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._config import patch_config
from langgraph._internal._runnable import RunnableSeq
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import override

from daruma.graph.branch import is_route
from daruma.graph.own_context import Within
from daruma.graph.tracing.callbacks import is_heard
from daruma.state.applied import state_of
from daruma.state.channels import State

_FIRST: Final = "seq:step:1"
"""LangGraph's tag for what runs within the node of such a sequence."""


class NodeRun(RunnableSeq):
    """LangGraph's sequence, but for a run that nobody listens to."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        if config is None or is_heard(config):
            return super().invoke(input, config, **given)
        node, *writers = self.steps
        config, context = _own(config), copy_context()
        context.run(var_child_runnable_config.set, config)
        return _written(writers, context.run(node.invoke, input, config, **given), config, input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        if config is None or is_heard(config):
            return await super().ainvoke(input, config, **given)
        node, *writers = self.steps
        config, context = _own(config), copy_context()
        context.run(var_child_runnable_config.set, config)
        # None of the writers waits for anything: LangGraph's two forms of each do the same.
        output = await Within(context, node.ainvoke(input, config, **given))
        return _written(writers, output, config, input)


def _written(writers: Iterable[Any], output: Any, config: RunnableConfig, given: Any) -> Any:
    for writer in writers:
        told = {"given": given} if is_route(writer) else {}
        output = writer.invoke(output, config, **told)
    return output


def _own(config: RunnableConfig) -> RunnableConfig:
    """Return the config for what runs within the node: the run's name and id are the node's own.

    A handler that belongs to a model is told of it as ever, but of another run that it is part of.
    """
    manager = config.get("callbacks")
    if isinstance(manager, BaseCallbackManager):  # made for this run, by LangGraph
        manager.tags = [*manager.inheritable_tags, _FIRST]
    return patch_config(config, callbacks=manager)


def run_quietly(compiled: CompiledStateGraph[Any, Any, Any, Any], names: Iterable[str]) -> None:
    """Have nodes of a compiled graph run so. Where LangGraph makes one anew, it runs as ever.

    What they are given is made by us, too: LangGraph's way sets each of many fields by itself.
    """
    for part in (compiled.nodes[name] for name in names):
        if isinstance(part.mapper, partial) and part.mapper.args == (State,):
            part.mapper = state_of
        stock = part.node
        if isinstance(stock, RunnableSeq):
            part.node = NodeRun(*stock.steps, name=stock.name, trace_policy=stock.trace_policy)
