"""The operating system's errors about a path, in one line that says what to do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from daruma.tools.errors import FileMissing, FileUnavailable, PathRefused, ToolError
from daruma.tools.files.paths import shown

REFUSED = {
    errno.EXDEV: "a link leads out of the workspace",
    errno.ELOOP: "a link that is not followed here: use the path it leads to",
}
UNAVAILABLE = {
    errno.ENOENT: "no such file or directory: list the directory to see what is there",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EEXIST: "already exists: edit it, or choose another name",
    errno.EISDIR: "is a directory",
    errno.ENXIO: "is not a regular file",
    errno.EAGAIN: "kept changing while it was opened: try again",
    errno.ENAMETOOLONG: "the name is too long",
}


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn an OSError of the body into a ToolError about `path`."""
    try:
        yield
    except OSError as error:
        raise explanation(error, path) from error


def explanation(error: OSError, path: str) -> ToolError:
    """PathRefused where the name may not be used, else FileUnavailable, FileMissing among them."""
    code = error.errno or 0
    if code in REFUSED:
        return PathRefused(f"{shown(path)}: {REFUSED[code]}")
    kind = FileMissing if code == errno.ENOENT else FileUnavailable
    return kind(f"{shown(path)}: {UNAVAILABLE.get(code) or os.strerror(code)}")
