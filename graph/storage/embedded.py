"""A real Postgres without an installation: started for its first user, stopped after its last.

Who uses the server is known from locks that the kernel drops with a process, not from lists of
process ids: these outlive a ``kill -9``, and the ids are given to other processes.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from daruma.graph.storage.server import Server
from daruma.state.data_dir import data_dir
from daruma.state.errors import StorageUnavailable


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
