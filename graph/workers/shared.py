"""The database that a graph shares with workers elsewhere."""

from typing import Any

from daruma.graph.compiled import Machine
from daruma.graph.storage.database import Database
from daruma.graph.storage.event_log import EventLog
from daruma.graph.storage.saver import PostgresSaver
from daruma.state.errors import DarumaError


class NotShared(DarumaError):
    """Raised for a graph that keeps its threads where no other process can get at them."""


def shared_database(graph: Machine) -> Database:
    """Return the database of a graph. Raises :class:`NotShared`."""
    if not isinstance(graph.checkpointer, PostgresSaver):
        raise NotShared("workers need Postgres: build_graph(..., persistence=pg)")
    return graph.checkpointer.database


def log_of(graph: Machine) -> EventLog:
    """Return where the events of a graph's threads are kept. Raises :class:`NotShared`."""
    shared_database(graph)
    saver: Any = graph.checkpointer
    log: EventLog = saver.events
    return log
