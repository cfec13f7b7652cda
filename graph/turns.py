"""The turns of a run: whose call changes a workspace, and which run it is that makes the calls."""

from dataclasses import dataclass, field
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from daruma.graph.of_a_run import OfARun
from daruma.tools.calls.journal import Turns


@dataclass(frozen=True)
class RunTurns(OfARun):
    """What is one run's own, from when it is started until it stops."""

    run: str = field(default_factory=lambda: uuid4().hex)
    turns: Turns = field(default_factory=Turns)

    @classmethod
    def of(cls, config: RunnableConfig) -> "RunTurns":
        """Return those of the run which a node is called in; new ones outside of any."""
        return cls.found_in(config) or cls()
