"""The first look of a run that goes on: what changed in the workspace while nobody ran (RO-07)."""

from threading import Lock
from typing import Any

from langchain_core.runnables import RunnableConfig

from daruma.state.drifted import Drifted
from daruma.tools.context import Context
from daruma.tools.drift import drift

_KEY = "__pregel_daruma_first_look"
"""Where a run's config holds its ``FirstLook``; LangGraph neither stores nor shows such a key."""


class FirstLook:
    """Looks once in a run, before its first node does anything."""

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
        with self._lock:
            first, self._taken = not self._taken, True
        return await drift(state.task, context) if first and node != "intake" else None
