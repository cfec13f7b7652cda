"""The directory an agent works in, the lock on it, and where its edits are kept."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from itertools import islice
from pathlib import Path

from daruma.state.data_dir import data_dir
from daruma.state.errors import WorkspaceBusy
from daruma.tools.errors import FileUnavailable
from daruma.tools.files._beneath import DirectoryEntry, FilesBeneath, Opener, list_entries, walk
from daruma.tools.files._paths import printable_path
from daruma.tools.threads import entered_in_thread, in_thread

# --- The directory an agent works in: what the rest of Daruma knows of files, never blocking.


class Workspace:
    """Files beneath one directory, by path relative to it.

    `root` must be an existing directory. Every method raises PathRefused for a path that may not be
    used and FileUnavailable for one that can not; files are limited to 4 MiB. `files` holds the
    same operations for code that is in a thread already.
    """

    def __init__(self, root: Path, *, opener: Opener | None = None) -> None:
        self.files = FilesBeneath(root, opener)

    @property
    def root(self) -> Path:
        """The directory, absolute, links resolved when the workspace was opened."""
        return self.files.root

    async def read_bytes(self, path: str) -> bytes:
        """The content of a regular file."""
        return await in_thread(self.files.read, path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Put `data` in place of an existing file atomically, its mode kept."""
        await in_thread(self.files.replace, path, data)

    async def create_bytes(self, path: str, data: bytes) -> None:
        """Make a new file and the directories that lead to it; refused if the name is taken."""
        await in_thread(self.files.create, path, data)

    async def delete(self, path: str) -> None:
        """Remove a regular file."""
        await in_thread(self.files.delete, path)

    async def directory(self, path: str) -> Path:
        """The absolute path of an existing directory, to start a command in."""
        if not await in_thread(self.files.is_directory, path):
            raise FileUnavailable(f"{printable_path(path)}: is not a directory")
        return self.root / await in_thread(self.files.locate, path)

    async def list_dir(self, path: str = ".") -> list[DirectoryEntry]:
        """The entries of a directory by name, `.git` left out."""
        return await in_thread(list_entries, self.files, path)

    async def walk(self, path: str = ".", *, limit: int = 10_000) -> list[DirectoryEntry]:
        """Everything beneath a directory, parents first, at most `limit` entries.

        Links are not followed. Exactly `limit` entries mean that there may be more.
        """
        return await in_thread(lambda: list(islice(walk(self.files, path), limit)))


# --- Keeping two runs of one host out of one workspace: locks on the folder itself and those above
# it.
#
# The kernel drops them with the process. A folder is locked for its run alone, those above it are
# shared: so neither the same folder nor one inside the other is worked in by two.


@contextmanager
def workspace_locked(workspace: str | None) -> Iterator[None]:
    """Have a workspace for oneself, in this and all other processes of the host.

    Raises :class:`~daruma.state.errors.WorkspaceBusy`. A folder that is not there, or whose file
    system has no locks, is not kept: tools say themselves what they miss.
    """
    with ExitStack() as stack:
        if workspace is not None:
            real = Path(os.path.realpath(workspace))
            for folder in reversed(real.parents):
                _lock(folder, fcntl.LOCK_SH, workspace, stack)
            _lock(real, fcntl.LOCK_EX, workspace, stack)
        yield


def aworkspace_locked(workspace: str | None) -> AbstractAsyncContextManager[None]:
    """Do the same, asynchronously: in a thread, unless there is nothing to be locked."""
    return nullcontext() if workspace is None else entered_in_thread(workspace_locked(workspace))


def _lock(folder: Path, kind: int, workspace: str, stack: ExitStack) -> None:
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    stack.callback(os.close, opened)
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WorkspaceBusy(
            f"another run on this machine works in {folder}: wait until that has stopped, or use "
            f"a copy of {workspace}"
        ) from None
    except OSError:
        return


# --- Where it is kept what a thread has seen and edited of a workspace's files.


def edit_folder(workspace: Path | str, thread: str) -> Path:
    """Return the folder of the edit histories of a thread in a workspace."""
    key = hashlib.sha256(f"{workspace}\0{thread}".encode()).hexdigest()[:32]
    return data_dir() / "edits" / key
