"""One run of a task from the request to the answer, and what it took."""

import time
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from tests.benchmarks.ground import Face, Ground
from tests.benchmarks.task import ASKED, Task

from daruma.graph.run import Machine

T = TypeVar("T")


@dataclass(frozen=True)
class Spent:
    """Milliseconds a step: by the clock, and of a processor in this process, all threads of it."""

    clock: float
    processor: float


def run_once(ground: Ground, face: Face, agent: Any, task: Task) -> Spent:
    """Run a task on a new thread."""
    task.calls = 0
    config, options = new_thread(task), durably(agent)
    clock, processor = time.perf_counter(), time.process_time()
    if face == "sync":
        out = agent.invoke(ASKED, config, **options)
    else:
        out = awaited(ground, agent.ainvoke(ASKED, config, **options))
    ran, worked = time.perf_counter() - clock, time.process_time() - processor
    assert task.calls == task.steps * task.at_once, f"{task.calls} calls: {out}"
    _settle(ground, face, agent, out)
    return Spent(1000 * ran / task.steps, 1000 * worked / task.steps)


def awaited(ground: Ground, work: Coroutine[Any, Any, T]) -> T:
    """Await work on the loop of the async systems, and hand its outcome on past the runner.

    A runner that puts the handler of Ctrl-C back has the outcome of its task written out in words,
    twice, for an error message of ``signal`` that nobody sees: a millisecond for a few messages.
    """
    came: list[T] = []

    async def keep() -> None:
        came.append(await work)

    ground.runner.run(keep())
    return came[0]


def new_thread(task: Task) -> RunnableConfig:
    """Return the configuration of a thread that nobody has used."""
    return {
        "configurable": {"thread_id": uuid.uuid4().hex},
        "recursion_limit": 10 * task.steps + 20,
    }


def durably(agent: Any) -> dict[str, Any]:
    """Return what has each step written before the next begins, where there is a place for it."""
    return {"durability": "sync"} if getattr(agent, "checkpointer", None) else {}


def _settle(ground: Ground, face: Face, agent: Any, out: Any) -> None:
    """Wait for what Daruma does after its answer, so that it falls upon nobody else's time."""
    if not isinstance(agent, Machine):
        return
    assert out["result"].completed, out["result"]
    if face == "sync":
        agent.evolution.drain()
    else:
        ground.runner.run(agent.evolution.adrain())
