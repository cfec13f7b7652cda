"""A graph whose ended tasks are kept in a list, in place of being learned from."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore
from tests.parts import memory, settings
from tests.scripted_runs import say

from daruma.graph.build import build_graph
from daruma.graph.learning import Evolution
from daruma.graph.models import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.state.lessons import Experience
from daruma.tools.evolution import Learning

CONFIG: Any = {"configurable": {"thread_id": "t"}}
REACT: Any = {"messages": [("user", "Do it")], "mode": "react"}
PLANNED: Any = {"messages": [("user", "Do it")], "mode": "plan_exec"}


class Learned:
    """What was handed over, in its order; each is learned from, successes too."""

    def __init__(
        self,
        model: BaseChatModel | None = None,
        tools: Iterable[Callable[..., Any]] = (),
        **sections: Any,
    ) -> None:
        self._kept: list[Experience] = []
        sections.setdefault("evolution", {"success_sample_rate": 1.0})
        given = settings(**sections)
        model = model or ScriptedChatModel(script=[say()])
        graph = build_graph(model, tools, given, checkpointer=memory(), store=InMemoryStore())
        self.graph: Machine = graph.copy({"evolution": Evolution(learn=self._keep)})

    async def _keep(self, experience: Experience, learning: Learning) -> None:
        assert learning.store is self.graph.store
        self._kept.append(experience)

    @property
    def experiences(self) -> list[Experience]:
        """All of them, once nothing is pending; as if all had ended at once."""
        assert self.graph.evolution.drain()
        assert self.graph.evolution.counts.failed == 0
        return [replace(each, at=0.0) for each in self._kept]

    @property
    def statuses(self) -> list[str]:
        """How they ended."""
        return [each.status for each in self.experiences]
