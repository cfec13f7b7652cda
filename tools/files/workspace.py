"""The directory an agent works in: what the rest of Daruma knows of files, never blocking."""

from itertools import islice
from pathlib import Path

from daruma.tools.errors import FileUnavailable
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.listing import Entry, entries, walk
from daruma.tools.files.openers import Opener
from daruma.tools.files.paths import shown
from daruma.tools.files.threads import in_thread


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
            raise FileUnavailable(f"{shown(path)}: is not a directory")
        return self.root / await in_thread(self.files.locate, path)

    async def list_dir(self, path: str = ".") -> list[Entry]:
        """The entries of a directory by name, `.git` left out."""
        return await in_thread(entries, self.files, path)

    async def walk(self, path: str = ".", *, limit: int = 10_000) -> list[Entry]:
        """Everything beneath a directory, parents first, at most `limit` entries.

        Links are not followed. Exactly `limit` entries mean that there may be more.
        """
        return await in_thread(lambda: list(islice(walk(self.files, path), limit)))
