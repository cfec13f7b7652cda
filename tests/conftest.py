"""One real Postgres for the session, and a fresh database for each test that asks for one."""

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings
from psycopg import sql
from psycopg.conninfo import make_conninfo

from daruma.graph.storage import open_postgres
from daruma.graph.storage._embedded import embedded_postgres

settings.register_profile("explore", deadline=None)  # a busy machine is no fault of the code
settings.register_profile(
    "daruma", settings.get_profile("explore"), derandomize=True, max_examples=40
)
settings.load_profile("daruma")

# Else each of hundreds of processes that tests start would compile all of Daruma again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Else looking for garbage takes a tenth of the time, as it did in commands.
gc.set_threshold(50_000, 20, 20)

TEMPLATE = "daruma_template"
MEMORY = Path("/dev/shm")  # noqa: S108 - a place, no name
ROOMY = 4 << 30


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use one process more than cores for the whole suite, since many tests wait.

    A part of it is soon done, and ``-s`` is seen in one.
    """
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    watched = config.getoption("capture") == "no"
    return min((os.cpu_count() or 1) + 1, 8) if whole and not watched else 0


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage neither while ten thousand cases are made, nor among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a ``sampled(n)`` test, n cases by a fixed lot are tried; the others are long."""
    cases = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark and not item.get_closest_marker("long"):
            cases[item.nodeid.partition("[")[0], mark.args[0]].append(item)
    for (test, most), of_test in cases.items():
        drawn = random.Random(test).sample(of_test, min(most, len(of_test)))  # noqa: S311
        for item in of_test:
            if item not in drawn:
                item.add_marker("long")


@pytest.fixture(scope="session", autouse=True)
def _heard() -> None:
    """What a shell starts in the background ignores SIGINT, and so would all that tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_data_dir() -> Iterator[None]:
    """What Daruma keeps outside of workspaces goes into a folder that ends with the session."""
    folder = Path(tempfile.mkdtemp(prefix="daruma-data-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DARUMA_DATA_DIR", str(folder))
        yield
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Connection string of a server in a temporary folder; under xdist each worker has its own.

    In memory, where the system has so much: to copy a database takes a quarter of the time there.
    Whoever sets ``TMPDIR`` has said where.
    """
    roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOMY
    memory = MEMORY if roomy and "TMPDIR" not in os.environ else None
    folder = Path(tempfile.mkdtemp(prefix="daruma-tests-", dir=memory))
    folder.chmod(0o755)  # as root, Postgres runs as an account that has to get in
    with embedded_postgres(folder) as server:
        yield server
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def _administrator(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
        with open_postgres(make_conninfo(postgres_server, dbname=TEMPLATE)):
            pass  # makes the tables
        yield connection


@pytest.fixture
def empty_postgres_url(_administrator: psycopg.Connection[Any]) -> Iterator[str]:
    """Connection string of a new database in which nothing was made yet."""
    yield from _database(_administrator, "template1")


@pytest.fixture
def postgres_url(_administrator: psycopg.Connection[Any]) -> Iterator[str]:
    """Connection string of a new database that has the tables."""
    yield from _database(_administrator, TEMPLATE)


def _database(administrator: psycopg.Connection[Any], template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    names = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
    create = "CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
    administrator.execute(sql.SQL(create).format(**names))
    yield make_conninfo(administrator.info.dsn, dbname=name)
    administrator.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**names))
