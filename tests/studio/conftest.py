"""One development server for a module of tests."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.studio.dev_server import DevServer
from tests.studio.thread import Thread


@pytest.fixture(scope="module")
def server(
    _heard: None,
    _administrator: psycopg.Connection[Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[DevServer]:
    """A server that runs, and ends with the module; no call of ours may have blocked its loop."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    _administrator.execute("CREATE DATABASE studio TEMPLATE daruma_template STRATEGY file_copy")
    url = make_conninfo(_administrator.info.dsn, dbname="studio")
    running = DevServer(url, tmp_path_factory.mktemp("studio"))
    yield running
    running.client.close()
    running.stop()
    _administrator.execute("DROP DATABASE studio WITH (FORCE)")


@pytest.fixture
def thread(server: DevServer, tmp_path: Path) -> Thread:
    """A new thread on the server, with a workspace."""
    return Thread(server, tmp_path)
