"""Where benchmarks run: one Postgres, a database for each kind of system, a loop that stays."""

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from tests.benchmarks.raw_loop import MADE

from daruma import aopen_postgres, open_postgres
from daruma.graph.storage import Postgres

Face = Literal["sync", "async"]
FACES: Final[tuple[Face, ...]] = ("sync", "async")
KINDS: Final = ("raw", "stock", "daruma")

_AS_DOCUMENTED: Final[dict[str, Any]] = {
    "autocommit": True,
    "prepare_threshold": 0,
    "row_factory": dict_row,
}
_MOST: Final = 20
"""Connections of a stock saver's pool, as in its documentation; Daruma's own has ten."""


@dataclass(frozen=True)
class Stores:
    """Where the threads of each kind of system are kept; None keeps nothing."""

    raw: Connection[Any] | AsyncConnection[Any] | None = None
    stock: BaseCheckpointSaver[Any] | None = None
    daruma: Postgres | None = None


@dataclass(frozen=True)
class Ground:
    """A database for each kind, what is open on them for both faces, and the loop of the async."""

    urls: Mapping[str, str]
    runner: asyncio.Runner
    stores: Mapping[Face, Stores]


@contextmanager
def ground_on(server: str) -> Iterator[Ground]:
    """Have new databases on a server, and drop them at the end."""
    names = {kind: f"bench_{kind}_{uuid.uuid4().hex}" for kind in KINDS}
    urls = {kind: make_conninfo(server, dbname=name) for kind, name in names.items()}
    with psycopg.connect(server, autocommit=True) as administrator:
        for name in names.values():
            administrator.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(urls["raw"]) as connection:
            connection.execute(MADE)
        with _opened(urls) as ground:
            yield ground
        for name in names.values():
            administrator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def _opened(urls: Mapping[str, str]) -> Iterator[Ground]:
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        later = AsyncExitStack()
        stack.callback(lambda: runner.run(later.aclose()))
        on_loop = runner.run(_on_a_loop(later, urls))
        yield Ground(urls, runner, {"sync": _in_threads(stack, urls), "async": on_loop})


def _in_threads(stack: ExitStack, urls: Mapping[str, str]) -> Stores:
    raw = stack.enter_context(psycopg.connect(urls["raw"], autocommit=True))
    pool: ConnectionPool[Any] = ConnectionPool(
        urls["stock"], max_size=_MOST, kwargs=_AS_DOCUMENTED, open=True
    )
    stock = PostgresSaver(stack.enter_context(pool))
    stock.setup()
    return Stores(raw, stock, stack.enter_context(open_postgres(urls["daruma"])))


async def _on_a_loop(stack: AsyncExitStack, urls: Mapping[str, str]) -> Stores:
    raw = await stack.enter_async_context(
        await AsyncConnection.connect(urls["raw"], autocommit=True)
    )
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
        urls["stock"], max_size=_MOST, kwargs=_AS_DOCUMENTED, open=False
    )
    stock = AsyncPostgresSaver(await stack.enter_async_context(pool))
    await stock.setup()
    return Stores(raw, stock, await stack.enter_async_context(aopen_postgres(urls["daruma"])))
