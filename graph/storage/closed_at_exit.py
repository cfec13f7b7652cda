"""Closing what nobody has closed when the process ends, while its background loop still turns."""

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from daruma.state.errors import DarumaError


@contextmanager
def closed_at_exit(close: Callable[[], None]) -> Iterator[None]:
    """Have ``close`` called at the exit if that comes first, as in a notebook that is shut down."""

    def end() -> None:
        with suppress(DarumaError):  # a lost database: there is nobody left to be told
            close()

    atexit.register(end)
    try:
        yield
    finally:
        atexit.unregister(end)
