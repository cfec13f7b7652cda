"""Running a coroutine that Ctrl-C and a polite kill end by cancelling it, clean-up included."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Cancelled(Exception):
    """Raised when a signal ended the run, after its clean-up; ``exit_code`` is 128 and its number.

    It has nothing to do with an error: whoever runs something decides what to say about it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def run_interruptible(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop. Raises :class:`Cancelled`.

    A second signal of the same kind does not wait for the clean-up.
    """
    received: list[int] = []

    async def watched() -> T:
        _cancel_on_signals(received)
        return await coroutine

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if not received:
            raise
        raise Cancelled(received[0]) from None


def _cancel_on_signals(received: list[int]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel(number: int) -> None:
        received.append(number)
        loop.remove_signal_handler(number)
        if task:
            task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, cancel, number)
