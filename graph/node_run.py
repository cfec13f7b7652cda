"""A node and its writers in one run, which tracers are told of if there are any.

LangGraph's own is told to nobody, too: it works out what to tell, and has a task to tell that the
run has ended and one for the node. That is half of what a step does to the event loop.
"""

from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._config import patch_config
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import override

from daruma.graph.branch import is_route
from daruma.graph.own_context import Within
from daruma.graph.tracing.callbacks import is_heard
from daruma.state.channels import State, state_of

_FIRST: Final = "seq:step:1"
"""LangGraph's tag for what runs within the node of such a sequence."""


Writer = Callable[[Any, RunnableConfig, Any], Any]
"""Writes what a node returned, which it hands on, given what the node was given."""


class NodeRun(RunnableSeq):
    """LangGraph's sequence, but for a run that nobody listens to."""

    def __init__(self, *steps: Any, **given: Any) -> None:
        super().__init__(*steps, **given)
        self._writers = [_writer(each) for each in self.steps[1:]]

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        if config is None or is_heard(config):
            return super().invoke(input, config, **given)
        config, context = _own(config), copy_context()
        context.run(var_child_runnable_config.set, config)
        output = context.run(self.steps[0].invoke, input, config, **given)
        return _written(self._writers, output, config, input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        if config is None or is_heard(config):
            return await super().ainvoke(input, config, **given)
        config, context = _own(config), copy_context()
        context.run(var_child_runnable_config.set, config)
        # None of the writers waits for anything: LangGraph's two forms of each do the same.
        output = await Within(context, self.steps[0].ainvoke(input, config, **given))
        return _written(self._writers, output, config, input)


def _written(writers: Iterable[Writer], output: Any, config: RunnableConfig, given: Any) -> Any:
    for write in writers:
        output = write(output, config, given)
    return output


def _writer(stock: Any) -> Writer:
    """Return what one of LangGraph's writers does, past what finds out anew what it takes."""
    takes_given = is_route(stock)

    def invoked(output: Any, config: RunnableConfig, given: Any) -> Any:
        return stock.invoke(output, config, **({"given": given} if takes_given else {}))

    if not (isinstance(stock, RunnableCallable) and _takes_config_only(stock)):
        return invoked
    function: Any = stock.func
    write = partial(function, **stock.kwargs)

    def written(output: Any, config: RunnableConfig, given: Any) -> Any:
        came = write(output, config, given=given) if takes_given else write(output, config)
        runs = stock.recurse and isinstance(came, Runnable)
        return came.invoke(output, config) if runs else came

    return written


def _takes_config_only(stock: RunnableCallable) -> bool:
    wanted = stock.func_accepts.keys() - stock.kwargs.keys()
    return wanted == {"config"} and not stock.explode_args


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
