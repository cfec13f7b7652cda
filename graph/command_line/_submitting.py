"""Leaving a thread to a worker: what would be run here is queued, and its name is printed."""

import asyncio
import json as json_format
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from langchain_core.runnables import RunnableConfig

from daruma.graph.build import build_graph
from daruma.graph.command_line._options import COMMANDS
from daruma.graph.command_line._printable import follow_command
from daruma.graph.command_line._session import Session, Start, usable_model
from daruma.graph.command_line._thread_view import Keepsake
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres, aopen_postgres
from daruma.graph.workers import GraphFactory, asubmit, reader_on
from daruma.tools.calls import mcp_tools


@dataclass(frozen=True)
class Submitting:
    """How a command talks that leaves the work to others."""

    json: bool

    def hold(self, session: Session, start: Start) -> int:
        """Queue what is to be run, and say so; return the exit code."""
        queued = asyncio.run(_queued(session, start))
        status = "queued" if queued else "nothing to run"
        if self.json:
            typer.echo(json_format.dumps({"thread": session.thread, "status": status}))
        else:
            typer.echo(session.thread)
            typer.echo(f"{status}: see {follow_command(session.thread)}", err=True)
        return 0


def submitting(*, yes: bool, json: bool) -> Submitting:
    """Return how to talk. Raises a usage error for ``--yes``: nobody is there to say it for."""
    if yes:
        raise typer.BadParameter("a worker agrees to nothing: answer with `daruma answer`")
    return Submitting(json)


async def _queued(session: Session, start: Start) -> bool:
    async with aopen_postgres() as postgres:
        kept = await session.keepsake(postgres)
        kept = replace(kept, model=usable_model(session.model or kept.model, kept.settings()))
        config = RunnableConfig(configurable={"thread_id": session.thread})
        going = start(await reader_on(postgres).aget_state(config))
        if going:
            how: Any = {"queue": COMMANDS, "metadata": kept.metadata}
            await asubmit(postgres, going.given, session.thread, **how)
        return going is not None


def graph_for(postgres: Postgres) -> GraphFactory:
    """Return what makes the graph that a command named, under the settings of its folder."""

    async def make(metadata: Mapping[str, Any], workspace: str | None) -> Machine:
        kept = Keepsake.of(metadata)
        settings = kept.settings()
        tools = await mcp_tools(settings.tools.mcp_servers, Path(workspace or kept.folder))
        store = postgres.store_for(settings.llm)
        return build_graph(kept.model, tools, settings, postgres, store=store)

    return make


def learner_for(postgres: Postgres) -> GraphFactory:
    """Return what makes a graph that only learns, under the same settings: nothing is started."""

    async def make(metadata: Mapping[str, Any], _workspace: str | None) -> Machine:
        kept = Keepsake.of(metadata)
        settings = kept.settings()
        store = postgres.store_for(settings.llm)
        return build_graph(kept.model, (), settings, postgres, store=store)

    return make
