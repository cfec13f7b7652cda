"""What was seen and edited of each file, kept outside the workspace for undo and caution."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from daruma.tools.files.file_history import FileHistory

PRIVATE: Final = 0o700


class EditHistory:
    """A directory with one folder per edited or viewed file; survives the process.

    `directory` must lie outside the workspaces it serves (ValueError). It is made when first
    used. Folders have mode 0700 and files 0600: they hold former contents.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @contextmanager
    def of(self, root: Path, location: str) -> Iterator[FileHistory]:
        """The history of one file beneath `root`, held against other threads and processes.

        `location` is relative to `root`, links resolved. Blocks; hold it for one edit only.
        """
        directory = self.directory.absolute()
        if directory.resolve().is_relative_to(root):
            raise ValueError(f"the edit history {directory} must lie outside the workspace {root}")
        key = hashlib.sha256(f"{root}\0{location}".encode()).hexdigest()[:32]
        folder = directory / key
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE, exist_ok=True)
        with _locked(folder):
            yield FileHistory(folder, location)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
