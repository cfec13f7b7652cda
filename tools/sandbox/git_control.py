"""The parts of a repository that run code later, outside: hooks, configuration, attributes.

Descriptors are opened step by step without following links, so that nothing that a command swaps
meanwhile is taken for them.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

DEPTH: Final = 2
"""How many folders below the workspace's root other repositories are looked for."""

LOOKED_AT: Final = 500
"""How many folders are looked into for them at most."""

NESTED: Final = 16
"""How many of them are protected at most."""

_CONTROL: Final = ("hooks", "config", "config.worktree", "info", "commondir")
_NOT_LOOKED_INTO: Final = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})
_PINNED: Final = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Pinned:
    """An open place in the workspace, and whether commands may write to it."""

    fd: int
    path: Path
    writable: bool


@contextmanager
def git_control(workspace: Path) -> Iterator[list[Pinned]]:
    """Yield what has to be mounted, in order; the descriptors live as long as the block.

    The repository's folder itself is among it, writable: what is mounted can not be renamed, and so
    not be replaced. A folder for hooks is made where there is none. A ``commondir``, by which a
    repository borrows the configuration of another, is removed at the end if it is new.
    """
    with ExitStack() as stack:
        pinned: list[Pinned] = []
        for repository in (Path(), *islice(_nested(workspace), NESTED)):
            git = _opened(workspace, repository / ".git", stack)
            if git is not None:
                pinned += _repository(git, workspace / repository / ".git", stack)
        yield pinned


def _repository(git: int, path: Path, stack: ExitStack) -> list[Pinned]:
    if not stat.S_ISDIR(os.fstat(git).st_mode):
        return [Pinned(git, path, writable=False)]
    with suppress(OSError):  # it is there, or can not be made by a command either
        os.mkdir("hooks", dir_fd=git)
    controls = _controls(git, path, stack)
    if not any(each.path.name == "commondir" for each in controls):
        stack.callback(_without_commondir, git)
    inner = [_controls(fd, at, stack) for fd, at in _modules(git, path, stack)]
    return [Pinned(git, path, writable=True), *controls, *(each for some in inner for each in some)]


def _controls(git: int, path: Path, stack: ExitStack) -> list[Pinned]:
    opened = ((name, _step(git, name, stack)) for name in _CONTROL)
    return [Pinned(fd, path / name, writable=False) for name, fd in opened if fd is not None]


def _modules(git: int, path: Path, stack: ExitStack) -> Iterator[tuple[int, Path]]:
    with suppress(OSError):
        names = sorted(each.name for each in (path / "modules").iterdir())
        for name in names[:NESTED]:
            modules = _step(git, "modules", stack)
            fd = _step(modules, name, stack) if modules is not None else None
            if fd is not None:
                yield fd, path / "modules" / name


def _without_commondir(git: int) -> None:
    with suppress(OSError):
        os.unlink("commondir", dir_fd=git)


def _nested(workspace: Path) -> Iterator[Path]:
    for found in islice(_folders(workspace, Path(), DEPTH), LOOKED_AT):
        if os.path.lexists(workspace / found / ".git"):
            yield found


def _folders(workspace: Path, at: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(workspace / at) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        if name not in _NOT_LOOKED_INTO:
            yield at / name
            if depth > 1:
                yield from _folders(workspace, at / name, depth - 1)


def _opened(workspace: Path, inside: Path, stack: ExitStack) -> int | None:
    fd = _step(None, str(workspace), stack)
    for name in inside.parts:
        fd = _step(fd, name, stack) if fd is not None else None
    return fd


def _step(folder: int | None, name: str, stack: ExitStack) -> int | None:
    try:
        fd = os.open(name, _PINNED, dir_fd=folder)
    except OSError:
        return None
    stack.callback(os.close, fd)
    return None if stat.S_ISLNK(os.fstat(fd).st_mode) else fd
