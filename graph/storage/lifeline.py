"""Whether a process of this host is alive: known from a lock that the kernel drops with it.

A thread whose process was killed can so be taken up at once, without waiting for its lease to end.
"""

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self
from uuid import uuid4

from daruma.state.data_dir import data_dir

_OLD: Final = 24 * 3600
"""Seconds after which the file of a process that has ended is swept away."""


_LIVES: Final[dict[int, "Life"]] = {}
"""By the number of the process: a fork has those of its parents, too, and none of its own yet."""


@dataclass(frozen=True)
class Life:
    """A process, by name and number for people, and by the file that it keeps locked."""

    host: str
    pid: int
    boot: str
    file: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Read what :meth:`text` has written; None for anything else."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return None

    @property
    def text(self) -> str:
        """The form that is stored."""
        return json.dumps(asdict(self))

    @property
    def is_over(self) -> bool:
        """Whether the process has surely ended; False where that can not be told from here."""
        if not self.boot or self.boot != _boot():
            return False
        try:
            with Path(self.file).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False  # it is locked, or not to be seen from here
        return True


def own_life() -> Life:
    """Return that of this process; a child that was forked has one of its own."""
    pid = os.getpid()
    return _LIVES.get(pid) or _LIVES.setdefault(pid, _begun(pid))


def known_life() -> Life | None:
    """Return that of this process if it was begun: without a look at any file."""
    return _LIVES.get(os.getpid())


def _begun(pid: int) -> Life:
    folder = data_dir() / "alive"
    file = folder / uuid4().hex
    with suppress(OSError):  # without it, others wait until the lease is over
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # kept open for as long as the process lives
    return Life(socket.gethostname(), pid, _boot(), str(file))


def _sweep(folder: Path) -> None:
    for file in folder.iterdir():
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > _OLD and _is_free(file):
                file.unlink()


def _is_free(file: Path) -> bool:
    with file.open("rb") as opened:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return True


@cache
def _boot() -> str:
    """Tell this start of this machine from all others; empty where there is no way to."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
