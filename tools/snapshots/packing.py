"""Keeping many contents at once, made smaller on another processor meanwhile."""

import hashlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeAlias

from daruma.tools.snapshots.contents import Contents, packed

BATCH: Final = 1024 * 1024
"""Bytes that are packed together: one small file alone is not worth handing over."""

WAITING: Final = 16 * BATCH
"""Bytes that wait to be written, at most, but for the last batch: one file may be larger."""

Row: TypeAlias = tuple[str, bool, bytes]


class Packing:
    """Takes contents and writes them into a store, batch by batch."""

    def __init__(self, contents: Contents, pool: ThreadPoolExecutor) -> None:
        self._contents = contents
        self._pool = pool
        self._batch: dict[str, bytes] = {}
        self._size = 0
        self._packed: deque[tuple[int, Future[list[Row]]]] = deque()
        self._waiting = 0
        self._put: set[str] = set()

    def put(self, data: bytes) -> str:
        """Take a content and return its SHA-256; it is in the store when the block has ended."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._put and not self._contents.has_blob(digest):
            self._put.add(digest)
            self._batch[digest] = data
            self._size += len(data)
            if self._size >= BATCH:
                self._hand_over()
        return digest

    def finish(self) -> None:
        """Write what is waiting."""
        self._hand_over()
        while self._packed:
            self._write_one()

    def _hand_over(self) -> None:
        self._packed.append((self._size, self._pool.submit(_rows, self._batch)))
        self._waiting += self._size
        self._batch, self._size = {}, 0
        while self._waiting > WAITING:
            self._write_one()

    def _write_one(self) -> None:
        size, rows = self._packed.popleft()
        self._contents.put_packed(rows.result())
        self._waiting -= size


@contextmanager
def packing(contents: Contents) -> Iterator[Packing]:
    """Keep many contents in an open store; all are there when the block ends."""
    with ThreadPoolExecutor(2, thread_name_prefix="packing") as pool:
        packing = Packing(contents, pool)
        yield packing
        packing.finish()


def _rows(batch: dict[str, bytes]) -> list[Row]:
    return [(digest, *packed(data)) for digest, data in batch.items()]
