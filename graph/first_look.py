"""The first look of a run that goes on: what changed in the workspace while nobody ran (RO-07)."""

from asyncio import Lock
from typing import Any

from langchain_core.runnables import RunnableConfig

from daruma.state.drifted import Drifted
from daruma.tools.context import Context
from daruma.tools.drift import drift

_KEY = "__pregel_daruma_first_look"
"""Where a run's config holds its ``FirstLook``; LangGraph neither stores nor shows such a key."""


class FirstLook:
    """Looks once in a run, before its first node does anything; several wait for one look."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False

    @classmethod
    def of(cls, config: RunnableConfig) -> "FirstLook | None":
        """Return that of the run which a node is called in."""
        found = config.get("configurable", {}).get(_KEY)
        return found if isinstance(found, cls) else None

    def noted(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run that this is to be of."""
        given = config or RunnableConfig()
        configurable = given.get("configurable", {}) | {_KEY: self}
        return RunnableConfig(**{**given, "configurable": configurable})

    async def at(self, node: str, state: Any, context: Context) -> Drifted | None:
        """Return what drifted, for the first node only; ``intake`` looks for itself."""
        async with self._lock:  # a sibling's work must not be taken for what others changed
            first, self._taken = not self._taken, True
            if not first or node == "intake":
                return None
            return await drift(state.task, context, getattr(state, "drifted", None))
