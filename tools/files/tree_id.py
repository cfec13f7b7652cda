"""A digest of a folder's content: what was approved is void once anything in it is another."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from daruma.tools.files.file_hashes import FileHashes, by_stat
from daruma.tools.files.openers import DIRECTORY, Opener, WalkingOpener, best_opener
from daruma.tools.files.os_errors import explained
from daruma.tools.files.paths import Parts
from daruma.tools.files.tree_parts import counts, is_fetched

_HASHES: Final = FileHashes()
_GONE: Final = (FileNotFoundError, NotADirectoryError)


def tree_id(root: Path) -> str:
    """Return the SHA-256, in hexadecimal, of all that lies in ``root``.

    Every name counts, also what git ignores: its kind, mode, content and, of a link, where it
    leads. Links are not followed, special files not opened. What tools make by themselves does not
    count, see :mod:`daruma.tools.files.tree_parts`; fetched dependencies and files over
    ``LARGEST`` count by size, times and inode. So does what may not be read. Blocks. Raises
    FileUnavailable if ``root`` is no readable directory.
    """
    with explained(str(root)):
        top = os.open(root, DIRECTORY | os.O_CLOEXEC)
    digest = hashlib.sha256()
    try:
        with explained(str(root)):
            os.listdir(top)
        for fields in _entries(top, _HASHES):
            for field in fields:
                digest.update(len(field).to_bytes(8, "big") + field)
    finally:
        os.close(top)
    return digest.hexdigest()


def _entries(top: int, hashes: FileHashes) -> Iterator[tuple[bytes, ...]]:
    """Yield what is known of each entry, parents first, in the order of the names' bytes."""
    waiting: list[Parts] = [()]
    while waiting:
        folder = waiting.pop()
        try:
            fd = _opened(top, folder)
        except _GONE:
            continue
        except OSError:
            yield b"unreadable", _name(folder)
            continue
        try:
            names = sorted(os.listdir(fd), key=os.fsencode)
            kept = [name for name in names if counts((*folder, name))]
            for name in kept:
                ...
        finally:
            os.close(fd)
