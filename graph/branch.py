"""The conditional edges of the machine, in the form that LangGraph takes.

LangGraph's own read the state for a router from a copy of every channel, and call it on a thread.
Our routers are pure, and so are our reducers: what the node returned is applied to what it was
given, and the router is called where we are. Where the node's run hands on what that was, it is not
read a second time.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._runnable import RunnableCallable
from langgraph.graph._branch import BranchSpec
from langgraph.types import Overwrite
from typing_extensions import override

from daruma.graph.tracing.callbacks import is_heard
from daruma.state.channels import State, applied

Route = Callable[[State], Any]


class Branch(BranchSpec):
    """A branch whose route is told to tracers only if somebody listens."""

    @override
    def _route(
        self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any, given: Any = None
    ) -> Any:
        route: Any = self.path
        state = _after(input, config, reader, given)
        result = route.invoke(state, config) if is_heard(config) else route.func(state)
        return self._finish(writer, input, result, config)

    @override
    async def _aroute(self, input: Any, config: RunnableConfig, *, reader: Any, writer: Any) -> Any:
        if not is_heard(config):
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
