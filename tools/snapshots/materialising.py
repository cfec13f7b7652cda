"""Writing a snapshot's files into a folder of their own."""

import os
from pathlib import Path

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import directory_opened, workspace_opened
from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.entry import HERE, Entry
from daruma.tools.snapshots.outcome import SnapshotUnavailable

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def materialise(contents: Contents, root: str, folder: Path) -> None:
    """Write a state into a new or empty folder: files, links, directories, modes.

    Repositories, special files and what is not kept are left out. Raises SnapshotUnavailable: the
    folder is not empty or can not be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with workspace_opened(folder) as top:
            if next(folder.iterdir(), None):
                raise SnapshotUnavailable(f"{folder}: not empty: name a new or an empty folder")
            _write(contents, root, top)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SnapshotUnavailable(f"{folder}: {why}: the files can not be written") from error


def _write(contents: Contents, root: str, top: int) -> None:
    modes: list[tuple[Parts, int]] = []
    waiting: list[tuple[Parts, str]] = [((), root)]
    while waiting:
        path, id_ = waiting.pop()
        with directory_opened(top, path) as fd:
            for name, entry in contents.tree(id_).items():
                if entry.kind == "directory":
                    modes.append(((*path, name), entry.mode))
                if entry.kind == "directory" and name != HERE:
                    os.mkdir(name, 0o700, dir_fd=fd)
                    waiting.append(((*path, name), entry.content))
                else:
                    _write_one(contents, fd, name, entry)
    for path, mode in reversed(modes):  # a directory that may not be written comes after its files
        with directory_opened(top, path) as fd:
            os.fchmod(fd, mode)


def _write_one(contents: Contents, folder: int, name: str, entry: Entry) -> None:
    if entry.kind == "link":
        os.symlink(entry.content, name, dir_fd=folder)
    elif entry.kind == "file":
        fd = os.open(name, _NEW, 0o600, dir_fd=folder)
        with os.fdopen(fd, "wb") as file:
            file.write(contents.blob(entry.content))
            file.flush()
            os.fchmod(fd, entry.mode)
