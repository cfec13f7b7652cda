"""What ``langgraph.json`` names: the graph of the development server."""

import asyncio
from functools import cache

from daruma.graph.build import build_graph
from daruma.graph.studio.demo_model import ShownModel
from daruma.graph.studio.machine import StudioMachine
from daruma.state.settings import Settings


async def graph() -> StudioMachine:
    """Return the graph; it is built once, on first use, from the settings of this folder.

    With no model in them it plays a shipped example, so that there is something to look at.
    """
    return await asyncio.to_thread(_built)


@cache
def _built() -> StudioMachine:
    settings = Settings.load().with_a_person()
    model = None if settings.llm.model else ShownModel()
    return StudioMachine.over(build_graph(model, settings=settings))
