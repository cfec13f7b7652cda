"""The parts of a repository that run code later, outside: hooks, configuration, attributes."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox.pins import Pinned, Pins
from daruma.tools.sandbox.placeholders import placeholders

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
