"""Recalling the memories that fit a task when it begins: in bounded time, or not at all."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from langgraph.store.base import BaseStore

from daruma.state.events import Event, MemoryRecalled
from daruma.state.lessons import Recalled, Remembered
from daruma.state.settings import Memory
from daruma.state.task import Task
from daruma.tools.memory._memories import Memories
from daruma.tools.text import is_related, without_keys
from daruma.tools.threads import in_thread

SECONDS: Final = 5.0
"""A task does not wait longer for its memories: as long as a person waits without a sign."""

MOST_CHARACTERS: Final = 12_000
"""Of all memories of a task together: about 3,000 tokens of every request."""

LONGEST_QUERY: Final = 4_000
"""Characters of a goal that are searched with; pasted logs tell little after that."""


async def recall(
    task: Task,
    about: str,
    store: BaseStore | None,
    settings: Memory,
    emit: Callable[[Event], None],
    *,
    seconds: float = SECONDS,
) -> Recalled | None:
    """Return the memories that fit what a task is about, best first, and tell of them.

    None where nothing is to be recalled: no store, memory switched off, a limit of 0. A store that
    fails or is slow costs the task its memories and ``seconds``, and a note says so.
    """
    if store is None or not settings.enabled or not settings.search_limit:
        return None
    memories = Memories(store, task.memory_owner, task.expert or "")
    try:
        async with asyncio.timeout(seconds):
            found = await _fitting(memories, about[:LONGEST_QUERY], settings.search_limit)
    except Exception as error:  # noqa: BLE001  # whatever a store raises: memory only helps
        return _failed(task, error, seconds, emit)
    if found:
        emit(MemoryRecalled(ids=tuple(each.id for each in found)))
    return Recalled(task_id=task.id, memories=tuple(found))


async def _fitting(memories: Memories, about: str, limit: int) -> list[Remembered]:
    """The floor is the same for every store: scores of different ones can not be compared."""
    best = await memories.search(about, limit * 2)
    if not best:
        return []
    fitting = await in_thread(
        lambda: [m for m in best if is_related(about, f"{m.section} {m.text}")]
    )
    return list(_within(fitting[:limit]))


def _within(memories: Sequence[Remembered]) -> Iterator[Remembered]:
    room = MOST_CHARACTERS
    for memory in memories:
        room -= len(memory.text)
        if room >= 0:
            yield memory


def _failed(
    task: Task, error: Exception, seconds: float, emit: Callable[[Event], None]
) -> Recalled:
    reason = " ".join(without_keys(str(error)).split())[:200] or type(error).__name__
    if isinstance(error, TimeoutError):
        reason = f"no answer within {seconds:g} s"
    note = f"no memories were recalled: {reason}"
    emit(MemoryRecalled(note=note))
    return Recalled(task_id=task.id, note=note)
