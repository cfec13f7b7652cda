"""What is kept and shown of a command's output while it runs and afterwards."""

import asyncio
import codecs
import re
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Final

from daruma.state.events import CommandOutput, Event, unheard
from daruma.tools.text import without_keys

# --- What is kept of a command's output, however much there is: its beginning and its end.


class BoundedOutput:
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


# --- The last lines of a command's output while it runs, for those who watch.

EVERY: Final = 0.5
"""Seconds before the first telling, and between two: a command that is quicker is not told of."""

LINES: Final = 5
LONGEST: Final = 200
"""Characters of a line that are told."""

_KEPT: Final = 8 * 1024
"""Bytes; a private key in PEM has half as many, and is masked as a whole."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_LINE_ENDS = re.compile(r"[\r\n]+")
_UNFINISHED_WORD = re.compile(r"(?<!\S)[^\w\s]*+\w\S*+\Z")

Tell = Callable[[tuple[str, ...]], None]


class LiveOutput:
    """Takes a command's output piece by piece, and tells its last lines every now and then.

    All methods are called by the thread that watches the command, and ``tell`` is called there.
    """

    def __init__(self, tell: Tell, now: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._now = tell, now
        self._end, self._whole = bytearray(), True
        self._untold = False
        self._next = now() + EVERY
        self._over = False
        self.until: bytes | None = None
        """What stands between the output and what is not for those who watch, if anything is."""

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        if self._over:
            return
        if self.until and (at := data.find(self.until)) >= 0:
            data, self._over = data[:at], True
        self._end += data
        if len(self._end) > _KEPT:
            del self._end[:-_KEPT]
            self._whole = False
        self._untold = True

    def wait(self) -> float:
        """Return the seconds until there is something to tell."""
        return max(0.0, self._next - self._now()) if self._untold else float("inf")

    def tell(self) -> None:
        """Tell what is new, if it is time to."""
        if self.wait() > 0:
            return
        self._untold, self._next = False, self._now() + EVERY
        if lines := last_lines(bytes(self._end), whole=self._whole):
            self._tell(lines)


def last_lines(data: bytes, *, whole: bool) -> tuple[str, ...]:
    """Return the last lines of an output's end, keys masked; ``whole`` says that it is all of it.

    What may be the part of a key is left out: the last word of a line that is not ended, and what
    stands before the first line's end where something is missing.
    """
    text = data.decode(errors="replace")
    if not whole:
        text = _LINE_ENDS.split(text, maxsplit=1)[-1] if _LINE_ENDS.search(text) else ""
    masked = without_keys(_UNFINISHED_WORD.sub("", _ESCAPES.sub("", text)))
    lines = [line.rstrip() for line in _LINE_ENDS.split(masked) if line.strip()]
    return tuple(line[:LONGEST] for line in lines[-LINES:])


def live_output(
    emit: Callable[[Event], None], purpose: str, command: str, call_id: str = ""
) -> LiveOutput | None:
    """Return what tells of a command in ``command_output`` events; None where nobody listens.

    It is made on the event loop that the events are emitted on.
    """
    if emit is unheard:
        return None
    loop = asyncio.get_running_loop()
    around = copy_context()  # a run's writer finds its place in the graph in there

    def tell(lines: tuple[str, ...]) -> None:
        event = CommandOutput(purpose=purpose, command=command, lines=lines, call_id=call_id)
        loop.call_soon_threadsafe(emit, event, context=around)

    return LiveOutput(tell)
