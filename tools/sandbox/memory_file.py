"""A file in memory that a child process reads by its descriptor."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def memory_file(content: bytes) -> Iterator[int]:
    """Yield the descriptor, at the file's beginning."""
    fd = os.memfd_create("daruma")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
