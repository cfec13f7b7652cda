"""Parking the reviews whose deadline has passed, wherever they were begun (PL-03)."""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.bridge import run
from daruma.graph.compiled import Machine
from daruma.graph.door import open_questions
from daruma.graph.held import workspace_of
from daruma.graph.parking import is_review, overdue
from daruma.graph.storage.database import Database
from daruma.graph.storage.pool import Connection
from daruma.graph.workers.carrying_out import kept_with, park
from daruma.graph.workers.shared import shared_database
from daruma.state.errors import Busy, DamagedState, DarumaError

GraphOf = Callable[[Mapping[str, Any], str | None], Awaitable[Machine]]
"""Makes the graph for a thread, of the metadata that it keeps, and for its workspace."""

_REVIEWS: Final = """
SELECT DISTINCT thread_id FROM checkpoint_writes AS asked
WHERE channel = '__interrupt__' AND checkpoint_ns = '' AND task_path LIKE '%%spec_review%%'
    AND NOT EXISTS (
        SELECT FROM checkpoints AS newer
        WHERE newer.thread_id = asked.thread_id AND newer.checkpoint_ns = ''
            AND newer.checkpoint_id > asked.checkpoint_id
    )
ORDER BY thread_id
"""


def sweep(graph: Machine) -> list[str]:
    """Park all overdue reviews in a graph's database, and return the names of their threads.

    Any number of processes may do so at once: each review is parked by one of them.
    """
    return run(asweep(graph))


async def asweep(graph: Machine) -> list[str]:
    """Do the same, asynchronously."""

    return await swept(shared_database(graph), graph, always(graph))


def always(graph: Machine) -> GraphOf:
    """Have all threads run on one graph."""

    async def same(_kept: Mapping[str, Any], _workspace: str | None) -> Machine:
        return graph

    return same


async def swept(database: Database, reader: Machine, graph_of: GraphOf) -> list[str]:
    """Park what is overdue, each thread on a graph of its own; ``reader`` looks at them."""
    reviewed = await database.transact(_reviewed)
    return [each for each in reviewed if await park_overdue(each, reader, graph_of)]


async def park_overdue(thread_id: str, reader: Machine, graph_of: GraphOf) -> bool:
    """Park a thread's review if it is overdue; return whether that was done here."""
    config = RunnableConfig(configurable={"thread_id": thread_id})
    with suppress(Busy, DamagedState):  # somebody goes on with it, or nobody can
        snapshot = await reader.aget_state(config)
        if overdue(snapshot, time.time()):
            return await park(await _graph_for(snapshot, reader, graph_of), thread_id)
    return False


async def _graph_for(snapshot: StateSnapshot, reader: Machine, graph_of: GraphOf) -> Machine:
    try:
        return await graph_of(kept_with(snapshot), workspace_of(None, snapshot))
    except DarumaError:  # parking needs neither the settings nor the model that it can not have
        return reader


async def _reviewed(connection: Connection) -> list[str]:
    found = await connection.execute(_REVIEWS, {})
    return [row["thread_id"] for row in await found.fetchall()]


def deadline_of(snapshot: StateSnapshot) -> float | None:
    """Return when the open review of a thread is to be parked, in Unix seconds; None for never."""
    deadlines = [
        value["deadline"]
        for value in open_questions(snapshot).values()
        if is_review(value) and value["deadline"] is not None
    ]
    return min(deadlines, default=None)
