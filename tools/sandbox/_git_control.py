"""The parts of repositories that run code later, outside: found, and kept from commands."""

import fcntl
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from daruma.tools.errors import CommandRefused
from daruma.tools.files import is_repository
from daruma.tools.sandbox._mounts import Pinned, Pins

# --- Files that keep a name taken, while commands run, by which git would read another
# configuration.
#
# What is not there can not be made read-only. Each says nothing new to git, so that one which is
# left because Daruma was killed does no harm; the next command takes it for its own and removes it.

CONTENT: Final = {"commondir": b".\n", "config.worktree": b""}
"""The repository's own folder, and no settings."""


@contextmanager
def placeholders(git: int, names: tuple[str, ...] = tuple(CONTENT)) -> Iterator[None]:
    """Make what is missing in an open folder; the last command that uses it removes it.

    Commands at once, also of other processes, know of each other by a lock on the folder.
    """
    lock = os.open(f"/proc/self/fd/{git}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        for name in names:
            with suppress(FileExistsError, PermissionError):
                _make(lock, name)
        yield
    finally:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in names:
                _remove(lock, name)
        os.close(lock)


def _make(folder: int, name: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(CONTENT[name])


def _remove(folder: int, name: str) -> None:
    with suppress(OSError):  # there is none, or it is no file of ours
        if _content(folder, name) == CONTENT[name]:
            os.unlink(name, dir_fd=folder)


def _content(folder: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        return file.read(16)


# --- The parts of a repository that run code later, outside: hooks, configuration, attributes.

_CONTROL: Final = ("hooks", "config", "config.worktree", "info", "commondir")
_OF_A_WORKTREE: Final = ("commondir", "gitdir", "config.worktree")


@contextmanager
def git_control(
    workspace: Path, repositories: Iterable[Path], mounted: Iterable[Path] = ()
) -> Iterator[list[Pinned]]:
    """Yield what has to be mounted, in order; the descriptors live as long as the block.

    Each of ``repositories``, and of the folders on the way to them and to what else is ``mounted``
    in the workspace, is among it, writable: so it can not be moved aside and another put in its
    place. A folder for hooks is made where there is none. A repository whose control files are
    links can only be read, for a link can not be protected. Raises
    :class:`~daruma.tools.errors.CommandRefused` if something can not be protected.
    """
    with ExitStack() as stack:
        pins = Pins(workspace, stack)
        closed = [each.relative_to(workspace) for each in mounted]
        try:
            for at in repositories:
                if not any(at.is_relative_to(each) for each in closed):
                    _repository(pins, at, stack)
            for place in closed:
                pins.around(place)
        except OSError as error:
            raise CommandRefused(f"a repository can not be protected: {error}") from error
        yield pins.all()


def _repository(pins: Pins, at: Path, stack: ExitStack) -> None:
    git = pins.pin(at, writable=True)
    if git is None:
        return
    if not stat.S_ISDIR(os.fstat(git).st_mode) or any(_is_link(git, name) for name in _CONTROL):
        pins.pin(at, writable=False)
        return
    with suppress(FileExistsError, PermissionError):
        os.mkdir("hooks", dir_fd=git)
    stack.enter_context(placeholders(git))
    for name in _CONTROL:
        pins.pin(at / name, writable=False)
    for name in _listed(git, "worktrees"):
        _worktree(pins, at / "worktrees" / name, stack)


def _worktree(pins: Pins, at: Path, stack: ExitStack) -> None:
    own = pins.pin(at, writable=True)
    if own is None or not stat.S_ISDIR(os.fstat(own).st_mode):
        return
    stack.enter_context(placeholders(own, ("config.worktree",)))
    for name in _OF_A_WORKTREE:
        pins.pin(at / name, writable=False)


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _listed(folder: int, name: str) -> list[str]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(f"/proc/self/fd/{folder}/{name}", flags)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        with os.scandir(fd) as entries:
            return sorted(each.name for each in entries)
    finally:
        os.close(fd)


# --- Finding the git repositories in a workspace: those in work, bare ones, submodules, worktrees.

FIRST_LOOK: Final = 20_000
"""How many folders are looked into, from the top down, before the first command: about 0.3 s."""

LOOKED_AT: Final = 200
"""How many before each further command, which may have made many to hide those that count."""

MOST: Final = 32
"""How many repositories are protected at most: with so many a command starts in 0.2 s."""

_NOT_LOOKED_INTO: Final = frozenset({".git", "node_modules", "__pycache__"})


class Repositories:
    """Which repositories there are; those that were there at first are not forgotten."""

    def __init__(self) -> None:
        self._first: dict[Path, tuple[Path, ...]] = {}

    def of(self, workspace: Path) -> tuple[Path, ...]:
        """Return the folders (or files) that git keeps its own in, relative to the workspace."""
        first = self._first.get(workspace)
        if first is None:
            first = tuple(islice(find_repositories(workspace, FIRST_LOOK), MOST))
            return self._first.setdefault(workspace, first)
        return tuple(
            dict.fromkeys([*first, *islice(find_repositories(workspace, LOOKED_AT), MOST)])
        )


def find_repositories(workspace: Path, most: int) -> Iterator[Path]:
    """Yield where git keeps its own, relative to the workspace; ``most`` folders are looked into.

    They are folders, or files that name one; the nearest come first.
    """
    for at, names in _folders(workspace, "", most):
        if is_repository(names):
            yield Path(at)
        if ".git" in names:
            yield Path(at, ".git")
            if names[".git"]:
                yield from _inner(workspace, at)


def _inner(workspace: Path, at: str) -> Iterator[Path]:
    """Yield the repositories of submodules: they lie in that of the one around them."""
    for inner, names in _folders(workspace, f"{at}/.git/modules".lstrip("/"), LOOKED_AT):
        if is_repository(names):
            yield Path(inner)


def _folders(workspace: Path, top: str, most: int) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield folders, the nearest first, with what is in each and whether that is a folder.

    Paths are plain texts: this is done around each command, and a ``Path`` costs as much as a look.
    """
    waiting, lead = deque([top]), f"{workspace}/"
    while waiting and most:
        at, most = waiting.popleft(), most - 1
        names = _names(lead + at)
        yield at, names
        folders = [name for name, folder in names.items() if folder]
        before = f"{at}/" if at else ""
        waiting += [before + name for name in sorted(folders) if name not in _NOT_LOOKED_INTO]


def _names(folder: str) -> dict[str, bool]:
    try:
        with os.scandir(folder) as entries:
            return {each.name: each.is_dir(follow_symlinks=False) for each in entries}
    except OSError:
        return {}
