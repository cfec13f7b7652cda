"""What ``langgraph.json`` names: the graph of the development server, and who may call that."""

import asyncio
import json
import os
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware

from daruma.graph.build import build_graph
from daruma.graph.follow import ListedOrigins
from daruma.graph.scenario import ShownModel
from daruma.graph.studio._machine import StudioMachine
from daruma.state.settings import Settings


async def graph() -> StudioMachine:
    """Return the graph of ``langgraph dev`` (FA-02), built once, from the settings of this folder.

    With no model in them it plays a shipped example, so that there is something to look at.
    """
    return await asyncio.to_thread(_built)


@cache
def _built() -> StudioMachine:
    settings = Settings.load().with_a_person()
    model = None if settings.llm.model else ShownModel()
    return StudioMachine.over(build_graph(model, settings=settings))


def listed() -> tuple[str, ...]:
    """Return the origins that ``http.cors.allow_origins`` lists: the server hands them on."""
    http: Any = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
    return tuple((http.get("cors") or {}).get("allow_origins") or ())


app = Starlette(middleware=[Middleware(ListedOrigins, origins=listed())])
"""The server puts its own routes behind this: pages of other origins start nothing (SE-03)."""
