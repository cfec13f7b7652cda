"""A graph that only looks at threads: it has no model, no tools, and settings that never matter."""

from daruma.graph.build import build_graph
from daruma.graph.compiled import Machine
from daruma.graph.storage.postgres import Postgres
from daruma.state.settings import Settings


def reader_on(postgres: Postgres) -> Machine:
    """Return it; it is made once for a database that is open, and goes with it."""
    kept = postgres.checkpointer.__dict__
    if "reader" not in kept:
        kept["reader"] = build_graph(settings=Settings(), persistence=postgres)
    reader: Machine = kept["reader"]
    return reader
