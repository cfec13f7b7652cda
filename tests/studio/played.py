"""A graph of one's own on the development server; its model plays the script of the asking thread.

A client chooses no model: so this one looks for ``THREAD.json`` in the folder of the server.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.config import get_config

from daruma import Settings, build_graph
from daruma.graph.models import AnsweringModel, ScriptedChatModel, read_script
from daruma.graph.run import Machine

ANY = "any"
"""The script of threads that have none of their own."""


class PlayedModel(AnsweringModel):
    """Plays a thread's script, as it is by then."""

    model_name: str = "played"

    @property
    def _llm_type(self) -> str:
        return "daruma-played"

    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        file = Path(f"{get_config()['configurable']['thread_id']}.json")
        script = read_script(file if file.is_file() else Path(f"{ANY}.json"))
        played = ScriptedChatModel(script=script)
        return played.answer(messages, metadata=metadata, tools=tools)

    async def _aanswered(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        return await asyncio.to_thread(self._answered, messages, kwargs)


async def graph() -> Machine:
    """Return the graph, on the settings of the server's folder and environment."""
    return await asyncio.to_thread(_built)


def _built() -> Machine:
    settings = Settings.load().with_a_person()
    llm = settings.llm.model_copy(update={"model": "scripted:played.json"})
    settings = settings.model_copy(update={"llm": llm})
    return build_graph(PlayedModel(), settings=settings)
