"""A call that may never end, such as one that waits for the loop it is on, fails a test instead."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Final, TypeVar

import pytest

from daruma.graph.sync import _background_loop

T = TypeVar("T")

_SECONDS: Final = 60.0
"""Far more than any call takes, on the busiest machine."""


def in_time(call: Callable[[], T], seconds: float = _SECONDS) -> T:
    """Return what a call does, made on another thread.

    One that does not end may hold up the background loop: other tests get a new one.
    """
    end: Future[T] = Future()

    def made() -> None:
        try:
            end.set_result(call())
        except BaseException as error:  # noqa: BLE001  # whoever waits for it raises it
            end.set_exception(error)

    threading.Thread(target=copy_context().run, args=[made], daemon=True).start()
    try:
        return end.result(seconds)
    except TimeoutError:
        if end.done():
            raise
        _background_loop.cache_clear()
        pytest.fail("it never ends")
