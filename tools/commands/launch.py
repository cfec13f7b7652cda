"""How one command is started and ended: what a level of confinement has to say about it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE_BLOCKS: Final = 16 * 1024 * 1024  # of 512 bytes: no file grows beyond 8 GiB
THREADS_EACH: Final = 16
"""Threads count as processes for the system's own limit, which is only the second line."""

_LIMITED: Final = "ulimit -c 0; ulimit -f {blocks}; {processes}"
_PROCESSES: Final = "ulimit -u {0} || ulimit -p {0};"  # bash and ksh, dash and ash


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use with all its processes: bytes of memory, and their number."""

    memory: int
    processes: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A command as it was asked for."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]


def _nothing(*_: int) -> None:
    """Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command as it is started. ``fds`` are inherited; ``started`` is told its id once it runs.

    ``end`` ends what the killing of the process group would miss, and waits for that. ``guarded``:
    a guard has to end it when this process is killed.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    started: Callable[[int], None] = _nothing
    end: Callable[[], None] = _nothing
    guarded: bool = True


@contextmanager
def plain(asked: Asked) -> Iterator[Launch]:
    """Start a command as it is."""
    yield Launch(asked.argv, asked.env)


@dataclass(frozen=True, slots=True)
class Confinement:
    """A level with its name, what it does not cover, its limits, and how it starts commands."""

    level: str = "none"
    not_covered: tuple[str, ...] = ()
    limits: Limits | None = None
    launch: Callable[[Asked], AbstractContextManager[Launch]] = plain


UNCONFINED: Final = Confinement()


def limited(argv: tuple[str, ...], processes: int | None = None) -> tuple[str, ...]:
    """Return ``argv`` started by a shell that sets limits first: no core files, no endless file.

    ``processes`` only where they are counted for this command alone: else all of the user's are.
    """
    own = _PROCESSES.format(processes * THREADS_EACH) if processes else ""
    script = _LIMITED.format(blocks=FILE_BLOCKS, processes=own)
    return ("/bin/sh", "-c", f'{{ {script} }} 2>/dev/null; exec "$@"', "sh", *argv)
