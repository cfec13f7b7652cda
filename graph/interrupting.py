"""Ctrl-C in a synchronous run: what its nodes wait for is cancelled, so that it ends at once.

LangGraph has the nodes of a watched stream run on threads, and waits for these before it lets a
``KeyboardInterrupt`` out, which Python raises in the main thread alone.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from daruma.graph.journey import Journey


class Waits:
    """What the nodes of one run wait for. There is no lock: a signal may come at any point."""

    def __init__(self) -> None:
        self.interrupted = False
        self._journeys: set[Journey[Any]] = set()

    @contextmanager
    def over(self, journey: Journey[Any]) -> Iterator[None]:
        """Have a journey end with the run, from before it has begun."""
        self._journeys.add(journey)
        try:
            if self.interrupted:
                journey.cancel()
            yield
        finally:
            self._journeys.discard(journey)

    def interrupt(self) -> None:
        """Cancel what is waited for, and what will be."""
        self.interrupted = True
        for journey in list(self._journeys):
            journey.cancel()


_WAITS: ContextVar[Waits | None] = ContextVar("daruma_waits", default=None)


def waits() -> Waits:
    """Return those of the run that this thread works for; new ones outside of any."""
    return _WAITS.get() or Waits()


def interruptible(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield the parts of a run. An interrupt cancels what its nodes do, until it has ended.

    Only where it would be raised as ``KeyboardInterrupt``: in the main thread, and if nobody
    else has taken the signal.
    """
    own = Waits()
    with _interrupting(own):
        while True:
            token = _WAITS.set(own)  # not while whoever reads the parts is at work
            try:
                part = next(parts)
            except StopIteration:
                return
            finally:
                _WAITS.reset(token)
            yield part


@contextmanager
def _interrupting(own: Waits) -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        own.interrupt()
        signal.default_int_handler(number, frame)

    if _in_main() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if _in_main() and signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main() -> bool:
    return threading.current_thread() is threading.main_thread()
