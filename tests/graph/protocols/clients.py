"""Threads as protocols' tests serve them: real Postgres, a scripted model, one folder."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.spec.face import RecordingModel

from daruma import Settings, aopen_postgres, build_graph
from daruma.graph.protocols import ClientThreads
from daruma.graph.run import Machine

NAMES = ("one", "two", "three")


@asynccontextmanager
async def client_threads(
    url: str, script: Any, with_tools: Any = (), **sections: Any
) -> AsyncIterator[ClientThreads]:
    """Yield them; the threads that are begun are named in turn."""
    names = iter(NAMES)
    async with aopen_postgres(url) as postgres:
        graph = build_graph(
            RecordingModel(script=script), with_tools, Settings(**sections), postgres
        )

        async def graph_of(_kept: Mapping[str, Any], _folder: str | None) -> Machine:
            return graph

        def keep(folder: str) -> dict[str, Any]:
            return {"daruma_folder": folder, "daruma_model": ""}

        yield ClientThreads(postgres, graph_of, keep, lambda: next(names))


def folder_in(path: Path, name: str = "ws") -> str:
    """Make an empty workspace."""
    (path / name).mkdir()
    return str(path / name)
