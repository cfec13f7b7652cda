"""Nodes are written once, async: this bridge carries them from any thread or loop to one loop.

A coroutine runs where its resources live; who waits for it may be a plain thread, a notebook's loop
or another event loop. Cancelling crosses the bridge in both directions.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from langgraph._internal._runnable import RunnableCallable

from daruma.graph.background import background_loop
from daruma.graph.interrupting import Waits, waits
from daruma.graph.journey import Journey
from daruma.graph.raising import Leaving

P = ParamSpec("P")
T = TypeVar("T")


def run(
    coroutine: Coroutine[Any, Any, T],
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    within: Waits | None = None,
) -> T:
    """Run a coroutine on ``loop`` (the background loop when none is given) and wait for its result.

    It sees the caller's context variables. An interrupted wait (``KeyboardInterrupt``) cancels the
    coroutine and waits for its clean-up; a second interrupt gives up on that too. So does an
    interrupt of the run ``within`` which it is waited for, whichever thread that comes to.

    Raises ``RuntimeError`` when called on the thread of that loop, where waiting would never end.
    """
    loop = loop or background_loop()
    try:
        refuse_own(loop)
    except RuntimeError:
        coroutine.close()
        raise
    journey = Journey(coroutine, loop)
    try:
        with (within or Waits()).over(journey):
            journey.begin()
            return journey.end.result()
    except BaseException:
        journey.cancel()
        concurrent.futures.wait([journey.end])
        raise


def refuse_own(loop: asyncio.AbstractEventLoop) -> None:
    """Raise ``RuntimeError`` on the thread of a loop that is about to be waited for."""
    if asyncio._get_running_loop() is loop:
        raise RuntimeError(
            "a synchronous call on its own event loop can not end: use the async one"
        )


async def on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that belongs to ``loop``, from whichever loop this is.

    A cancelled caller cancels the coroutine, waits for its clean-up, and only then is cancelled.
    """
    if asyncio.get_running_loop() is loop:
        return await coroutine
    journey = Journey(coroutine, loop)
    journey.begin()
    end = asyncio.wrap_future(journey.end)
    cancelled: asyncio.CancelledError | None = None
    while not end.done():
        try:
            await asyncio.wait([end])
        except asyncio.CancelledError as error:
            cancelled = error
            journey.cancel()
    result = end.result()
    if cancelled:
        raise cancelled
    return result


def async_node(node: Callable[P, Coroutine[Any, Any, Any]]) -> RunnableCallable:
    """Make one async function a node for ``invoke``, ``stream``, ``ainvoke`` and ``astream``.

    Error handlers need it too. LangGraph injects by the names and annotations it finds, which are
    kept; the input schema of a node that is sent to is not inferred: give ``input_schema``.
    """

    @wraps(node)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> Any:
        own = waits()
        try:
            return run(node(*args, **kwargs), within=own)
        except asyncio.CancelledError:
            if own.interrupted:  # past the error handlers: the thread stays before this node
                raise Leaving(KeyboardInterrupt()) from None
            raise

    # LangGraph takes apart the code of what is wrapped, to look for graphs in it: 10 ms for all.
    vars(waiting)["__signature__"] = signature(node)
    del waiting.__wrapped__
    return RunnableCallable(waiting, node, trace=False)
