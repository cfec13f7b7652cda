"""Carrying the tasks out again and again, and what that comes to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from langgraph.store.base import BaseStore
from tests.learning.student import TOOLS
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel

from daruma.graph.build import build_graph
from daruma.state.lessons import Lessons
from daruma.state.settings import Settings


class Replayable(Protocol):
    """A task that can be carried out again as it was."""

    @property
    def request(self) -> str:
        """What is sent."""

    def prepare(self, folder: Path) -> None:
        """Make its workspace."""


@dataclass(frozen=True)
class Done:
    """One task that was carried out: whether it failed, what it was given, what was asked for."""

    task: Replayable
    failed: bool
    requests: int
    lessons: Lessons | None


@dataclass(frozen=True)
class Passes:
    """Passes over the same tasks."""

    done: Sequence[Sequence[Done]]

    @property
    def first(self) -> Sequence[Done]:
        """What the tasks came to at first."""
        return self.done[0]

    @property
    def last(self) -> Sequence[Done]:
        """What they came to at last."""
        return self.done[-1]

    @property
    def failures(self) -> tuple[int, ...]:
        """Tasks that failed in each pass."""
        return tuple(map(_failed, self.done))

    @property
    def repeated(self) -> int:
        """Tasks that failed both at first and at last."""
        return sum(a.failed and b.failed for a, b in zip(self.first, self.last, strict=True))

    @property
    def requests(self) -> tuple[int, ...]:
        """Requests to the model in each pass."""
        return tuple(map(_asked, self.done))


def learning_settings(name: str, **evolution: Any) -> Settings:
    """Settings under which the first red check ends a task, and nothing is tried against it."""
    return settings(
        evolution={"namespace": name, **evolution},
        verification={
            "enabled": True,
            "commands": ["sh check.sh"],
            "max_reinjections": 0,
        },
        fallback_chain={"recovery": {"enabled": False}},
        rollback={"snapshots": False},
        spec_review={"enabled": False},
        budgets={"max_steps": 5, "verify": 1, "reflect": 0},
        memory={"enabled": False},
        llm={"requests": {"per_model": 1, "per_call": 1}},
    )


def carried_out(
    model: RecordingModel,
    tasks: Iterable[Replayable],
    given: Settings,
    store: BaseStore,
    folder: Path,
    times: int = 2,
) -> Passes:
    """Carry tasks out so many times, each on a thread and in a workspace of its own.

    What a task taught is on record before the next one begins.
    """
    given_tasks = list(tasks)
    graph = build_graph(model, TOOLS, given, checkpointer=memory(), store=store)
    passes = [
        [_done(graph, model, task, folder / f"{number}-{n}") for n, task in enumerate(given_tasks)]
        for number in range(1, times + 1)
    ]
    return Passes(passes)


def _done(graph: Any, model: RecordingModel, task: Replayable, folder: Path) -> Done:
    task.prepare(folder)
    before = len(model.requests)
    request = {"messages": [("user", task.request)], "workspace": str(folder)}
    result = graph.invoke(request, {"configurable": {"thread_id": folder.name}})["result"]
    assert graph.evolution.drain(30), "it was not learned from in time"
    return Done(task, not result.completed, len(model.requests) - before, result.lessons)


def _failed(done: Iterable[Done]) -> int:
    return sum(each.failed for each in done)


def _asked(done: Iterable[Done]) -> int:
    return sum(each.requests for each in done)
