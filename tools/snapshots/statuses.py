"""What the system said of files that were read before, so that they need not be read again."""

import os
import time
from collections.abc import Callable

from daruma.tools.files.file_hashes import SETTLED
from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.contents import Contents


class Statuses:
    """Hashes of a workspace's files, good for as long as nothing about a file has changed."""

    def __init__(
        self, contents: Contents, workspace: bytes, now: Callable[[], int] = time.time_ns
    ) -> None:
        self._database = contents.database
        self._workspace = workspace
        self._now = now
        rows = self._database.execute(
            "SELECT path, status, hash FROM statuses WHERE workspace = ?", (workspace,)
        )
        self._known: dict[bytes, tuple[str, str]] = {path: (told, has) for path, told, has in rows}
        self._seen: set[bytes] = set()
        self._new: list[tuple[bytes, bytes, str, str]] = []

    def known(self, path: Parts, status: os.stat_result) -> str | None:
        """Return the hash of a file that is as it was when it was read."""
        key = os.fsencode("/".join(path))
        told = self._known.get(key)
        if told is None or told[0] != _told(status):
            return None
        self._seen.add(key)
        return told[1]

    def keep(self, path: Parts, status: os.stat_result, digest: str) -> None:
        """Note the hash of a file that was read, unless it was changed a moment ago."""
        if self._now() - max(status.st_mtime_ns, status.st_ctime_ns) >= SETTLED:
            key = os.fsencode("/".join(path))
            self._seen.add(key)
            self._new.append((self._workspace, key, _told(status), digest))

    def save(self) -> None:
        """Write what is new, and forget files that were not seen."""
        gone = ((self._workspace, key) for key in self._known.keys() - self._seen)
        self._database.executemany("DELETE FROM statuses WHERE workspace = ? AND path = ?", gone)
        self._database.executemany("INSERT OR REPLACE INTO statuses VALUES (?, ?, ?, ?)", self._new)


def _told(status: os.stat_result) -> str:
    times = f"{status.st_mtime_ns},{status.st_ctime_ns}"
    return f"{status.st_dev},{status.st_ino},{status.st_size},{times}"
