"""What goes round LangGraph's engine, and what it buys."""

import threading
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import fields
from functools import cache, partial
from typing import Any, Final, Generic, TypeVar

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
    var_child_runnable_config,
)
from langgraph._internal._config import ensure_config as ensure_run_config
from langgraph._internal._config import patch_config
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_DURABILITY,
    CONFIG_KEY_RUNTIME,
)
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph._branch import BranchSpec
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite
from typing_extensions import override

from daruma.graph.storage import PostgresSaver, strict_saver
from daruma.graph.tracing import has_listeners
from daruma.state.channels import State, applied, state_of
from daruma.state.settings import Settings
from daruma.tools.threads import MOST_TOOL_THREADS

# --- Awaiting work in a context of its own, as a task of its own would be, without one.
#
# A task begins and ends by turns of the event loop, which cost more than what is done in them.

T = TypeVar("T")


class Within(Awaitable[T], Generic[T]):
    """A coroutine that sees and changes the variables of ``context``, and those of nobody else."""

    __slots__ = ("_context", "_coroutine")

    def __init__(self, context: Context, coroutine: Coroutine[Any, Any, T]) -> None:
        self._context, self._coroutine = context, coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        """Pass on what the coroutine waits for, and to it what came of that."""
        turn: Callable[[Any], Any] = self._coroutine.send
        given: Any = None
        while True:
            try:
                awaited = self._context.run(turn, given)
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                given = None  # an error holds this frame, which must not hold the error
            try:
                turn, given = self._coroutine.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001  # whatever it is, it is the coroutine's
                turn, given = self._coroutine.throw, error
            awaited = None  # the same: what failed holds its error


# --- How many tasks of a superstep a synchronous run has going on at once.
#
# LangGraph has a thread wait for each of them, and another write what it came to. By Python's own
# measure these are six on two cores: the seventh tool would begin when the first has ended.

AT_ONCE: Final = 2 * MOST_TOOL_THREADS
"""A thread for each blocking tool that can run, and one for what is to be written of it."""


def at_once(config: RunnableConfig | None, asked: int | None) -> RunnableConfig:
    """Return the config of a run with room for all its tasks, or with what was ``asked`` for."""
    given = config or RunnableConfig()
    return RunnableConfig(**{**given, "max_concurrency": asked or AT_ONCE})


# --- A synchronous call crosses to the background loop once, and its run is asynchronous there.
#
# On LangGraph's own synchronous loop each node and each checkpoint would cross by itself.

_ALONE: Final = threading.Lock()


@contextmanager
def alone() -> Iterator[bool]:
    """Say whether no other run crosses now, and keep others from it until this one has ended.

    A crowd of threads gets on faster, each on its own, than it would on the one loop.
    """
    first = _ALONE.acquire(blocking=False)
    try:
        yield first
    finally:
        if first:
            _ALONE.release()


def crosses(checkpointer: Any, config: RunnableConfig) -> bool:
    """Whether a run can be asynchronous on any loop, and nobody who hears of it would notice.

    Only with checkpointers that are known to work there; others are bound to a loop, or have no
    asynchronous methods at all. A run within another graph's has to do with what that one has.
    """
    if not _works_anywhere(checkpointer) or is_within(config):
        return False
    told = get_callback_manager_for_config(ensure_config(config))
    return all(map(hears_anywhere, told.handlers + told.inheritable_handlers))


def hears_anywhere(handler: BaseCallbackHandler) -> bool:
    """Whether a handler may be told of a run on the background loop's thread.

    Any other was told of the graph and its nodes where it was called, on the one thread that its
    window, its page or its thread-local state belongs to. LangChain would tell it on some other.
    """
    return isinstance(handler, AsyncCallbackHandler) or handler.run_inline


def _works_anywhere(checkpointer: Any) -> bool:
    if checkpointer is None or checkpointer is False or type(checkpointer) is InMemorySaver:
        return True
    return isinstance(checkpointer, PostgresSaver)


# --- A run as part of another graph's: a node of that one, or called in one (FA-08).
#
# LangGraph then takes the saver that the other graph lends, whatever the graph itself was built
# with. A config that names a thread of its own begins a run of its own, wherever that is.


def is_within(config: RunnableConfig | None) -> bool:
    """Whether a config is that of a part of another graph's run, or of that part's state."""
    given = _around(config)
    return CONFIG_KEY_CHECKPOINTER in given and bool(given.get(CONFIG_KEY_CHECKPOINT_NS))


def durability_within(config: RunnableConfig | None) -> Any:
    """Return how durable a run within another graph's is: as that one asks, else each step.

    None where nothing is kept.
    """
    given = _around(config)
    return given.get(CONFIG_KEY_DURABILITY, "sync") if given.get(CONFIG_KEY_CHECKPOINTER) else None


def reading_strictly(config: RunnableConfig | None) -> RunnableConfig:
    """Return the config of a run within another graph's that reads back as one of its own would.

    What the other graph lends reads its own values as ever.
    """
    given, lent = config or RunnableConfig(), _around(config).get(CONFIG_KEY_CHECKPOINTER)
    own = {CONFIG_KEY_CHECKPOINTER: strict_saver(lent)} if lent else {}
    return RunnableConfig(**{**given, "configurable": {**given.get("configurable", {}), **own}})


def _around(config: RunnableConfig | None) -> dict[str, Any]:
    return ensure_run_config(config).get("configurable", {})


# --- LangGraph's runtime, which it copies several times for each task, field by field.
#
# ``dataclasses.replace`` looks anew at what fields a kind has: that took more of a step than most
# of our nodes.


class QuickRuntime(Runtime[Settings]):
    """The same, but for how it is copied; what comes of it is one, too."""

    __slots__ = ()

    @override
    def merge(self, other: Runtime[Settings]) -> "QuickRuntime":
        merged = super().merge(other)
        return QuickRuntime(**{name: getattr(merged, name) for name in _names(Runtime)})

    @override
    def patch_execution_info(self, **overrides: Any) -> Runtime[Settings]:
        if self.execution_info is None:
            return super().patch_execution_info(**overrides)
        return _with(self, {"execution_info": _with(self.execution_info, overrides)})

    @override  # the last one: from here on the name means the method
    def override(self, **overrides: Any) -> "QuickRuntime":
        return _with(self, overrides)


def quickly(config: RunnableConfig, store: BaseStore | None) -> RunnableConfig:
    """Return the config of a run whose tasks have such runtimes; ``store`` is its graph's.

    A run within another graph's takes on that one's, as ever.
    """
    around = config, var_child_runnable_config.get() or {}
    if any(CONFIG_KEY_RUNTIME in each.get("configurable", {}) for each in around):
        return config
    configurable = config.get("configurable", {}) | {CONFIG_KEY_RUNTIME: QuickRuntime(store=store)}
    return RunnableConfig(**{**config, "configurable": configurable})


def _with(value: T, changes: Mapping[str, Any]) -> T:
    """Return a copy of a frozen value with changes, made past what keeps it from being changed."""
    kind: Any = type(value)
    made: T = object.__new__(kind)
    for name in _names(kind):
        _put(made, name, changes[name] if name in changes else getattr(value, name))
    return made


_put: Final = object.__setattr__


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


# --- The conditional edges of the machine, in the form that LangGraph takes.
#
# LangGraph's own read the state for a router from a copy of every channel, and call it on a thread.
# Our routers are pure, and so are our reducers: what the node returned is applied to what it was
# given, and the router is called where we are. Where the node's run hands on what that was, it is
# not read a second time.

Route = Callable[[State], Any]


class Branch(BranchSpec):
    """A branch whose route is told to tracers only if somebody listens."""

    @override
    def _route(
        self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any, given: Any = None
    ) -> Any:
        route: Any = self.path
        state = _after(input, config, reader, given)
        result = route.invoke(state, config) if has_listeners(config) else route.func(state)
        return self._finish(writer, input, result, config)

    @override
    async def _aroute(self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any) -> Any:
        if not has_listeners(config):
            return self._route(input, config, reader=reader, writer=writer)
        result = await self.path.ainvoke(_after(input, config, reader), config)
        return self._finish(writer, input, result, config)


def add_branch(graph: Any, source: str, route: Route, ends: Mapping[Hashable, str]) -> None:
    """Add conditional edges to a graph that is not compiled yet, named as their route is."""

    async def at_once(state: Any) -> Any:
        return route(state)

    path: Any = RunnableCallable(route, at_once, name=route.__name__)
    graph.add_conditional_edges(source, path, dict(ends))
    branches = graph.branches[source]
    branches[route.__name__] = Branch(*branches[route.__name__])


def is_route(writer: object) -> bool:
    """Whether a writer of a node is a branch of ours, which takes what the node was given."""
    return isinstance(getattr(getattr(writer, "func", None), "__self__", None), Branch)


def _after(update: Any, config: RunnableConfig, reader: Any, given: Any = None) -> Any:
    """Return the state after a node, from what it was given and returned.

    Callers of ``update_state`` may write in forms of LangGraph's that no node of ours returns. One
    of several that were sent out was given a part of the state only.
    """
    plain = isinstance(update, dict) and not any(isinstance(v, Overwrite) for v in update.values())
    if not plain:
        return reader(config)
    before = given if isinstance(given, State) else reader(config, fresh=False)
    return applied(before, update)


# --- A node and its writers in one run, which tracers are told of if there are any.
#
# LangGraph's own is told to nobody, too: it works out what to tell, and has a task to tell that the
# run has ended and one for the node. That is half of what a step does to the event loop.

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
        if config is None or has_listeners(config):
            return super().invoke(input, config, **given)
        config, context = _own(config), copy_context()
        context.run(var_child_runnable_config.set, config)
        output = context.run(self.steps[0].invoke, input, config, **given)
        return _written(self._writers, output, config, input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **given: Any) -> Any:
        if config is None or has_listeners(config):
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
