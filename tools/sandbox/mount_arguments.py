"""How bubblewrap is told what to hide, to show and to open, and in which order."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from daruma.tools.sandbox.hidden import Seen
from daruma.tools.sandbox.mounts import Kind, listening_sockets, mounts
from daruma.tools.sandbox.pins import Pinned
from daruma.tools.sandbox.places import TEMPORARY

CLOSED_SIZE: Final = 16 * 1024 * 1024
"""Bytes that a place which is merely hidden may hold: folders on the way to what lies deeper."""


class Places:
    """What is mounted for a command in ``workspace``, which may use ``memory`` bytes."""

    def __init__(self, view: Seen, workspace: Path, memory: int) -> None:
        found = mounts(view, workspace, listening_sockets())
        self._kinds = {path: kind for path, kind in found if not path.is_relative_to("/dev")}
        self._writable = {Path(os.path.realpath(place)) for place in TEMPORARY}
        self._roomy = {view.home, *self._writable}
        self._size = max(memory // 4, CLOSED_SIZE)
        self.inside = [
            path for path in self._kinds if path != workspace and path.is_relative_to(workspace)
        ]

    def arguments(self, pinned: Iterable[Pinned]) -> Iterator[str]:
        """Yield all of them; ``pinned`` come first in the workspace, for they open again."""
        yield from ("--size", str(self._size), "--tmpfs", "/dev/shm")  # noqa: S108
        yield from self._mounts(path for path in self._kinds if path not in self.inside)
        for each in pinned:
            kind = "--bind-fd" if each.writable else "--ro-bind-fd"
            yield from (kind, str(each.fd), str(each.path))
        yield from self._mounts(self.inside)

    def _mounts(self, paths: Iterable[Path]) -> Iterator[str]:
        for path in paths:
            yield from self._mount(path, self._kinds[path])

    def _mount(self, path: Path, kind: Kind) -> Iterator[str]:
        if kind == "workspace":
            yield from ("--bind", str(path), str(path))
        elif kind == "shown":
            yield from ("--ro-bind-try", str(path), str(path))
        elif path.is_dir():
            mode = "1777" if path in self._writable else "0755"
            size = self._size if path in self._roomy else CLOSED_SIZE
            yield from ("--perms", mode, "--size", str(size), "--tmpfs", str(path))
        elif path.exists():  # it was, when this host was looked at
            yield from ("--ro-bind", os.devnull, str(path))
