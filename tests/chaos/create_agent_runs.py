"""LangChain's ``create_agent`` with the middleware that it has for all this."""

from typing import Any

import openai
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_openai import ChatOpenAI
from tests.chaos.daruma_runs import MOST_STEPS, SECONDS
from tests.chaos.outcome import Outcome, judged, raised
from tests.chaos.world import ToolFunction

AT_ONCE: Any = {"max_retries": 2, "initial_delay": 0.0, "backoff_factor": 0.0}
"""As many requests to a model as Daruma makes, and no wait between them."""


class CreateAgent:
    """One agent for all tasks; what it can not overcome is to be raised."""

    def __init__(self, tools: list[ToolFunction], *, streaming: bool) -> None:
        self._client = openai.DefaultAsyncHttpxClient()
        self._streaming = streaming
        middleware: list[Any] = [
            ModelCallLimitMiddleware(run_limit=MOST_STEPS, exit_behavior="error"),
            ToolCallLimitMiddleware(run_limit=MOST_STEPS, exit_behavior="error"),
            ModelFallbackMiddleware(self._model("b")),
            ModelRetryMiddleware(**AT_ONCE, on_failure="error"),
            ToolRetryMiddleware(**AT_ONCE, on_failure="continue"),
        ]
        prompt = "You carry out a task with the tools you are given."
        self._agent: Any = create_agent(
            self._model("a"), tools, system_prompt=prompt, middleware=middleware
        )

    def _model(self, name: str) -> ChatOpenAI:
        return ChatOpenAI(
            model=name,
            timeout=SECONDS,
            stream_chunk_timeout=SECONDS,
            max_retries=0,
            http_async_client=self._client,
            http_socket_options=(),
        )

    async def __call__(self, goal: str, answer: str) -> Outcome:
        """Do a task and judge how it ended."""
        config: Any = {"recursion_limit": 20 * MOST_STEPS}
        request: Any = {"messages": [("user", goal)]}
        try:
            values = await self._values(request, config)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is counted
            return raised(error)
        return judged(values["messages"][-1].text, answer)

    async def _values(self, request: Any, config: Any) -> Any:
        if not self._streaming:
            return await self._agent.ainvoke(request, config)
        values: Any = None
        modes = ["messages", "values"]
        async for mode, part in self._agent.astream(request, config, stream_mode=modes):
            values = part if mode == "values" else values
        return values

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
