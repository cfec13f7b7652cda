"""One piece of work that is done beside runs, and for which nobody waits for ever."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

CLEANING_SECONDS: Final = 1.0
"""How long cancelled work may take to clean up, while it is waited for."""

End = concurrent.futures.Future[None]


class LeftUndone(Exception):
    """What becomes of a job that was not done when it could be waited for no longer."""


def _end() -> End:
    end = End()
    end.set_running_or_notify_cancel()  # nobody who waits for it can take it away
    return end


@dataclass(eq=False)
class Job:
    """Work, and the ``place`` that it needs, which is not to be closed before.

    ``told`` is given what was raised, or None. At most ``at_once`` of its like are done at once.
    ``over`` is set once it counts no more, ``gone`` once nothing of it is under way.
    """

    work: Callable[[], Coroutine[Any, Any, None]]
    told: Callable[[BaseException | None], None]
    at_once: int
    place: object = None
    task: "asyncio.Task[None] | None" = None
    over: End = field(default_factory=_end)
    gone: End = field(default_factory=_end)


async def within(seconds: float, work: Awaitable[None]) -> None:
    """Await work for so long. What ignores its cancellation must not hold its place for ever.

    Raises TimeoutError, and what the work raises.
    """
    working = asyncio.ensure_future(work)
    working.add_done_callback(_look_at)
    try:
        done, _ = await asyncio.wait([working], timeout=seconds)
    except asyncio.CancelledError:
        working.cancel()
        await asyncio.wait([working], timeout=CLEANING_SECONDS)
        raise
    if not done:
        _left_behind.add(working)
        working.add_done_callback(_left_behind.discard)
        working.cancel()
        raise TimeoutError(f"it was not done within {seconds:g} s")
    working.result()


_left_behind: set["asyncio.Future[None]"] = set()
"""What was cancelled and has not ended: asyncio itself would forget it, and complain of that."""


def _look_at(future: "asyncio.Future[None]") -> None:
    """See what was raised, so that asyncio does not report what nobody has looked at."""
    if not future.cancelled():
        future.exception()
