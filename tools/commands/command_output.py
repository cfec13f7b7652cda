"""What is kept of a command's output, however much there is: its beginning and its end."""

import codecs
from collections import deque
from collections.abc import Callable


class Kept:
    """The first and the last half of `limit` bytes of a stream; memory stays bounded."""

    def __init__(self, limit: int, heard: Callable[[bytes], None] | None = None) -> None:
        self._heard = heard
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of the stream; whoever hears it too gets it."""
        if self._heard:
            self._heard(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        if rest := data[room:]:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            first = self._tail.popleft()
            self._tail_size -= len(first)
            self._left_out += len(first)

    @property
    def truncated(self) -> bool:
        """Whether something is missing from `text`."""
        return self._left_out + self._tail_size > self._tail_limit

    def text(self) -> str:
        """The stream as text, what is not UTF-8 or is NUL replaced, and a line where it was cut."""
        tail = b"".join(self._tail)
        if not self.truncated:
            return _cleaned((bytes(self._head) + tail).decode(errors="replace"))
        end = tail[len(tail) - self._tail_limit :]
        missing = self._left_out + len(tail) - len(end)
        return f"{_begun(self._head)}\n[{missing} bytes left out]\n{_ended(end)}"


def _begun(data: bytearray) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return _cleaned(decoder.decode(data, final=False))  # a character cut in two is dropped


def _ended(data: bytes) -> str:
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return _cleaned(data[start:].decode(errors="replace"))


def _cleaned(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
