"""What the tasks and phases were called that savepoints were taken for."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.runnables import RunnableConfig

from daruma.graph.compiled import Machine
from daruma.state.errors import DamagedState
from daruma.state.savepoint import Savepoint

Titles = Mapping[tuple[str, str | None], str]
"""Goals by ``(task id, None)``, titles of phases by ``(task id, phase id)``."""


async def titles_on(graph: Machine, thread: str, savepoints: Iterable[Savepoint]) -> Titles:
    """Read what is behind savepoints off a thread: each request finds the task before it ended."""
    config = RunnableConfig(configurable={"thread_id": thread})
    wanted = {each.task_id for each in savepoints}
    titles = titles_of((await graph.aget_state(config)).values)
    if wanted <= {task_id for task_id, _ in titles}:
        return titles
    with suppress(DamagedState):  # a title is not worth hiding the rest of a thread
        async for past in graph.aget_state_history(config, filter={"source": "input"}):
            titles = titles_of(past.values) | titles
    return titles


def titles_of(values: Mapping[str, Any]) -> dict[tuple[str, str | None], str]:
    """Return what the task at hand and its phases are called; ``values`` are those of a state."""
    task, plan = values.get("task"), values.get("plan")
    if task is None:
        return {}
    phases = plan.phases if plan else ()
    return {(task.id, None): task.goal} | {(task.id, each.id): each.title for each in phases}
