"""A synchronous call crosses to the background loop once, and its run is asynchronous there.

On LangGraph's own synchronous loop each node and each checkpoint would cross by itself.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
    var_child_runnable_config,
)
from langgraph.checkpoint.memory import InMemorySaver

from daruma.graph.storage.saver import PostgresSaver

_WITHIN: Final = "__pregel_"
"""What LangGraph's keys begin with, in the config of all that runs within a graph."""

_ALONE: Final = threading.Lock()


@contextmanager
def alone() -> Iterator[bool]:
    """Say whether no other run crosses now, and keep others from it until this one has ended.

    A crowd of threads gets on faster, each on its own, than it would on the one loop.
    """
    first = _ALONE.acquire(blocking=False)
    try:
        yield first
    finally:
        if first:
            _ALONE.release()


def crosses(checkpointer: Any, config: RunnableConfig) -> bool:
    """Whether a run can be asynchronous on any loop, and nobody who hears of it would notice.

    Only with checkpointers that are known to work there; others are bound to a loop, or have no
    asynchronous methods at all. A run within another graph's has to do with what that one has.
    """
    if not _works_anywhere(checkpointer) or _is_within(config):
        return False
    told = get_callback_manager_for_config(ensure_config(config))
    return all(map(hears_anywhere, told.handlers + told.inheritable_handlers))


def hears_anywhere(handler: BaseCallbackHandler) -> bool:
    """Whether a handler may be told of a run on the background loop's thread.

    Any other was told of the graph and its nodes where it was called, on the one thread that its
    window, its page or its thread-local state belongs to. LangChain would tell it on some other.
    """
    return isinstance(handler, AsyncCallbackHandler) or handler.run_inline


def _works_anywhere(checkpointer: Any) -> bool:
    if checkpointer is None or checkpointer is False or type(checkpointer) is InMemorySaver:
        return True
    return isinstance(checkpointer, PostgresSaver)


def _is_within(config: RunnableConfig) -> bool:
    given = (config, var_child_runnable_config.get() or {})
    return any(key.startswith(_WITHIN) for each in given for key in each.get("configurable", {}))
