"""Daruma as it is driven through chaos."""

from typing import Any

from tests.chaos.outcome import Outcome, judged, raised
from tests.chaos.world import ToolFunction
from tests.parts import memory, settings

from daruma.graph.build import build_graph
from daruma.state.result import TaskResult

SECONDS = 4.0
"""For one request, on a busy machine too; a request that hangs costs as much."""
MOST_STEPS = 30

SETTINGS = {
    "llm": {
        "fallback_models": ["openai:b"],
        "requests": {"seconds": SECONDS, "chunk_seconds": SECONDS, "wait_seconds": 0},
    },
    "budgets": {"max_steps": MOST_STEPS},
    "fallback_chain": {"recovery": {"wait_seconds": 0}},
}


class Daruma:
    """One graph for all tasks, each on a thread of its own."""

    def __init__(self, tools: list[ToolFunction], *, streaming: bool) -> None:
        given = settings(**SETTINGS)
        self._graph: Any = build_graph("openai:a", tools, given, checkpointer=memory())
        self._streaming = streaming

    async def __call__(self, goal: str, answer: str) -> Outcome:
        """Do a task and judge how it ended."""
        config: Any = {"configurable": {"thread_id": goal}}
        request: Any = {"messages": [("user", goal)]}
        try:
            if self._streaming:
                async for _ in self._graph.astream(request, config, stream_mode="messages"):
                    pass
            else:
                await self._graph.ainvoke(request, config)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is counted
            return raised(error)
        state = await self._graph.aget_state(config)
        return _judged(state.values.get("result"), answer)

    async def close(self) -> None:
        """Leave nothing behind."""


def _judged(result: TaskResult | None, answer: str) -> Outcome:
    if result is None:
        return Outcome("failed", "asked a person")
    if result.completed:
        return judged(result.output, answer)
    code = result.error_struct.error_code if result.error_struct else ""
    return Outcome("failed", f"{result.status} {code}: {(result.error_message or '')[:80]}")
