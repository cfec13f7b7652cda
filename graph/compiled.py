"""The compiled machine: LangGraph's graph behind a door, with the defaults that make it durable."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import override

from daruma.graph.door import admit, refuse_secrets
from daruma.state.channels import Input, Output, State
from daruma.state.settings import Settings


class Machine(CompiledStateGraph[State, Settings, Input, Output]):
    """Daruma's compiled graph.

    ``invoke``, ``ainvoke`` and all kinds of streaming come through ``stream`` and ``astream``, so
    the door stands there. A run without a context gets the graph's settings, also when resumed; a
    run with a checkpointer is durable step by step unless it asks for less.
    """

    settings: Settings

    @classmethod
    def of(
        cls, compiled: CompiledStateGraph[State, Settings, Input, Output], settings: Settings
    ) -> Self:
        """Make the machine of a compiled graph."""
        machine = cls.__new__(cls)
        machine.__dict__.update(compiled.__dict__, settings=settings)
        return machine

    @override
    def copy(self, update: dict[str, Any] | None = None) -> Self:
        # LangGraph's own copy goes through __init__, which drops what is not an argument of it.
        machine = self.__class__.__new__(self.__class__)
        machine.__dict__.update(self.__dict__, **(update or {}))
        return machine

    @override
    def stream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Iterator[Any]:
        snapshot = self.get_state(self._thread(config)) if self._remembers(config) else None
        admitted = admit(input, snapshot)
        yield from super().stream(admitted, config, **self._defaulted(options))

    @override
    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        known = self._remembers(config)
        snapshot = await self.aget_state(self._thread(config)) if known else None
        admitted = admit(input, snapshot)
        async for part in super().astream(admitted, config, **self._defaulted(options)):
            yield part

    def _remembers(self, config: RunnableConfig | None) -> bool:
        configurable = self._thread(config).get("configurable", {})
        return bool(self.checkpointer) and "thread_id" in configurable

    def _thread(self, config: RunnableConfig | None) -> RunnableConfig:
        merged = merge_configs(self.config, config)
        refuse_secrets(merged.get("configurable", {}))
        return merged

    def _defaulted(self, options: dict[str, Any]) -> dict[str, Any]:
        defaults: dict[str, Any] = {"context": self.settings}
        if self.checkpointer:
            defaults["durability"] = "sync"
        return options | {key: options.get(key) or value for key, value in defaults.items()}
