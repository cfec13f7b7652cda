"""The embedded Postgres server of one data folder: made, started, found running, stopped."""

import fcntl
import os
import shlex
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from psycopg.conninfo import make_conninfo

from daruma.graph.storage.programs import Programs
from daruma.state.errors import StorageUnavailable

_VERSION = "18"
_START_SECONDS = 60
_SOCKET = ".s.PGSQL.5432"
_LONGEST_SOCKET_PATH = 103


class Server:
    """Start and stop the server on ``folder``; callers take care that one of them acts at a time.

    Every process of the server inherits a lock on ``alive.lock``: while nobody holds it, nothing of
    the server is left, whatever ``postmaster.pid`` says. Methods block, and raise
    :class:`StorageUnavailable`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._log = self._data / "server.log"
        self._programs = Programs(folder)

    def conninfo(self) -> str:
        """Return the connection string of the running server."""
        host = str(self._sockets())
        return make_conninfo(host=host, port=5432, user="postgres", dbname="postgres")

    def start(self) -> None:
        """Start the server unless it runs."""
        self._make_data()
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                raise StorageUnavailable(f"the embedded Postgres does not answer: see {self._log}")
            with (self._folder / "alive.lock").open("ab") as alive:
                try:
                    fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.05)  # the one who started or stopped it was killed meanwhile
                else:
                    self._launch(alive.fileno())

    def stop(self) -> None:
        """Stop the server, ending its connections."""
        sockets = self._sockets()
        with suppress(StorageUnavailable):  # it may have ended by itself
            self._programs.run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._data))
            self._remove_leftovers(sockets)

    def _remove_leftovers(self, sockets: Path | None) -> None:
        """Remove what a killed server leaves: its files name processes that are others' by now."""
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        for left in (_SOCKET, f"{_SOCKET}.lock"):
            ((sockets or self._data) / left).unlink(missing_ok=True)
        if sockets and sockets != self._data:
            with suppress(OSError):
                sockets.rmdir()

    def _launch(self, alive: int) -> None:
        self._remove_leftovers(self._sockets())
        if self._log.exists():
            self._log.replace(self._log.with_suffix(".old"))
        options = shlex.join(["-h", "", "-k", str(self._make_sockets())])
        where = ["-D", str(self._data), "-l", str(self._log), "-o", options]
        wait = ["-w", "-t", str(_START_SECONDS)]
        try:
            self._programs.run("pg_ctl", "start", *wait, *where, pass_fds=[alive])
        except StorageUnavailable as error:
            raise StorageUnavailable(
                f"the embedded Postgres does not start: see {self._log}"
            ) from error

    def _make_data(self) -> None:
        marker = self._data / "PG_VERSION"
        if not marker.exists():
            fresh = self._folder / "fresh"  # renamed when complete: a kill leaves no half database
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(mode=0o700)
            self._programs.give(fresh)
            options = ["--auth=trust", "--encoding=UTF8", "--no-locale", "-U", "postgres"]
            self._programs.run("initdb", *options, "-D", str(fresh))
            fresh.rename(self._data)
        if (version := marker.read_text().strip()) != _VERSION:
            raise StorageUnavailable(
                f"{self._data} is of Postgres {version}, not {_VERSION}: "
                "upgrade it with pg_upgrade, or set DARUMA_DATA_DIR to another folder"
            )

    def _make_sockets(self) -> Path:
        if len(os.fsencode(self._data / _SOCKET)) <= _LONGEST_SOCKET_PATH:
            return self._data
        sockets = Path(tempfile.mkdtemp(prefix="daruma-"))
        self._programs.give(sockets)
        return sockets

    def _sockets(self) -> Path | None:
        """Where the running server listens: the fifth line of its ``postmaster.pid``."""
        try:
            return Path((self._data / "postmaster.pid").read_text().splitlines()[4])
        except (FileNotFoundError, IndexError):
            return None

    def _answers(self) -> bool:
        sockets = self._sockets()
        if not sockets:
            return False
        with socket.socket(socket.AF_UNIX) as door:
            return not door.connect_ex(str(sockets / _SOCKET))
