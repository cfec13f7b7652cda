"""The compiled graph as one run holds it: nobody else writes on its thread meanwhile (DU-03)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import override

from daruma.graph.door import refuse_secrets, refuse_unkept_id
from daruma.graph.edited_state import edited
from daruma.graph.held import athread_held, thread_held
from daruma.graph.kept_metadata import refuse_unkept_metadata
from daruma.state.channels import Input, Output, State
from daruma.state.settings import Settings


class HeldMachine(CompiledStateGraph[State, Settings, Input, Output]):
    """A graph whose every way of writing on a thread holds that thread.

    ``holds`` says that this copy of it does so now, through the checkpointer that it has.
    """

    holds: bool = False

    @override
    def copy(self, update: dict[str, Any] | None = None) -> Self:
        # LangGraph's own copy goes through __init__, which drops what is not an argument of it.
        machine = self.__class__.__new__(self.__class__)
        machine.__dict__.update(self.__dict__, **(update or {}))
        return machine

    @override
    def bulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        with self._held(config) as own:
            return CompiledStateGraph.bulk_update_state(own, config, edited(supersteps))

    @override
    async def abulk_update_state(self, config: RunnableConfig, supersteps: Any) -> RunnableConfig:
        async with self._aheld(config) as own:
            updates = edited(supersteps)
            return await CompiledStateGraph.abulk_update_state(own, config, updates)

    @contextmanager
    def _held(self, config: RunnableConfig | None) -> Iterator[Self]:
        """Yield the machine as it may write on a thread; who holds it already goes on with that."""
        if self.holds or not self._remembers(config):
            yield self
            return
        refuse_unkept_metadata(self._thread(config))
        with thread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    @asynccontextmanager
    async def _aheld(self, config: RunnableConfig | None) -> AsyncIterator[Self]:
        """Do the same, asynchronously."""
        if self.holds or not self._remembers(config):
            yield self
            return
        refuse_unkept_metadata(self._thread(config))
        async with athread_held(self.checkpointer, self._thread_id(config)) as saver:
            yield self.copy({"checkpointer": saver, "holds": True})

    def _remembers(self, config: RunnableConfig | None) -> bool:
        configurable = self._thread(config).get("configurable", {})
        return bool(self.checkpointer) and "thread_id" in configurable

    def _thread_id(self, config: RunnableConfig | None) -> str:
        return str(self._thread(config)["configurable"]["thread_id"])

    def _thread(self, config: RunnableConfig | None) -> RunnableConfig:
        merged = merge_configs(self.config, config)
        refuse_secrets(merged.get("configurable", {}))
        refuse_unkept_id(merged.get("configurable", {}))
        return merged
