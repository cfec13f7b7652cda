"""Work in a context of its own: seen from outside as a task, from the event loop as a call."""

import asyncio
import gc
import weakref
from contextvars import ContextVar, copy_context

import pytest

from daruma.graph.fast_path import Within

NAME: ContextVar[str] = ContextVar("test_name", default="nobody")


async def test_what_the_work_sets_stays_with_it() -> None:
    """It sees what was set before, and nobody sees what it sets: also after it has waited."""
    seen: list[str] = []

    async def work() -> str:
        seen.append(NAME.get())
        NAME.set("work")
        await asyncio.sleep(0)
        seen.append(NAME.get())
        return "done"

    NAME.set("caller")
    said = await Within(copy_context(), work())

    assert said == "done"
    assert seen == ["caller", "work"]
    assert NAME.get() == "caller"


async def test_it_is_the_callers_task() -> None:
    """There is none of its own to begin, to end and to wait for."""

    async def work() -> object:
        await asyncio.sleep(0)
        return asyncio.current_task()

    assert await Within(copy_context(), work()) is asyncio.current_task()


async def test_an_error_is_raised_and_not_kept() -> None:
    """A cycle would hold all that the work had, until somebody collects it."""

    class Large(Exception):
        pass

    def failing() -> "asyncio.Future[None]":
        end = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(end.set_exception, Large())
        return end

    async def work() -> None:
        await failing()

    gc.disable()
    try:
        try:
            await Within(copy_context(), work())
        except Large as error:
            kept = weakref.ref(error)
        await asyncio.sleep(0)  # the event loop lets go of it
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("swallowed", [True, False])
async def test_a_cancellation_reaches_the_work(swallowed: bool) -> None:
    """Which may clean up, in its own context, and even go on."""
    seen: list[str] = []

    async def work() -> str:
        NAME.set("work")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append(NAME.get())
            if not swallowed:
                raise
        return "went on"

    async def call() -> str:
        return await Within(copy_context(), work())

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    task.cancel()
    (said,) = await asyncio.gather(task, return_exceptions=True)

    assert seen == ["work"]
    assert said == "went on" if swallowed else isinstance(said, asyncio.CancelledError)


async def test_work_that_is_left_behind_is_closed() -> None:
    """As any coroutine is that nobody waits for any more."""
    closed: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def call() -> None:
        await Within(copy_context(), work())

    left = call()
    left.send(None)
    left.close()

    assert closed == [True]
