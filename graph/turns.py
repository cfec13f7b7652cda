"""The turns of a run: whose call changes a workspace, and which run it is that makes the calls."""

from dataclasses import dataclass, field
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from daruma.tools.turns import Turns

_KEY = "__pregel_daruma_turns"
"""Where a run's config holds its ``RunTurns``; LangGraph neither stores nor shows such a key."""


@dataclass(frozen=True)
class RunTurns:
    """What is one run's own, from when it is started until it stops."""

    run: str = field(default_factory=lambda: uuid4().hex)
    turns: Turns = field(default_factory=Turns)

    @classmethod
    def of(cls, config: RunnableConfig) -> "RunTurns":
        """Return those of the run which a node is called in; new ones outside of any."""
        found = config.get("configurable", {}).get(_KEY)
        return found if isinstance(found, cls) else cls()

    def noted(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run that these are to be of."""
        given = config or RunnableConfig()
        configurable = given.get("configurable", {}) | {_KEY: self}
        return RunnableConfig(**{**given, "configurable": configurable})
