"""Looking up what earlier tasks have taught of one like this: one call of the store (EV-05)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from langgraph.store.base import BaseStore, Item, Result, SearchItem

from daruma.state.lessons import KnownPitfall, Lessons
from daruma.state.mode import KEEP_WORKING, Mode
from daruma.state.pitfall import Pitfall
from daruma.state.settings import Settings
from daruma.tools.evolution.kept_text import kept_line
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.skills_about import skills_about
from daruma.tools.evolution.variants import instructions_of
from daruma.tools.evolution.variants import ops as variant_ops
from daruma.tools.files.threads import in_thread

T = TypeVar("T")

MOST: Final = 3
"""Pitfalls that a task is told of."""


@dataclass(frozen=True)
class About:
    """The task that lessons are looked up for. ``now`` is Unix time.

    ``experts`` are its team's. ``observing`` looks for what it would have been given.
    """

    task_id: str
    owner: str
    goal: str
    mode: Mode
    now: float
    experts: tuple[str, ...] = ()
    observing: bool = False

    @property
    def actors(self) -> tuple[str, ...]:
        """Those whose prompts the task has: the planner's only where one is asked."""
        planner = ("plan",) if self.mode in KEEP_WORKING else ()
        return ("main", *planner, *self.experts)


async def looked_up(about: About, store: BaseStore, settings: Settings) -> Lessons:
    """Return the lessons for a task, be they none. Raises what the store raises."""
    given = settings.evolution
    skills = await _beside(about, partial(skills_about, about.goal, settings.skills.folders))
    pitfalls = Pitfalls(store, about.owner, shared=given.shared)
    ops = pitfalls.similar_ops(about.goal, skills)
    results = await store.abatch([*ops, *variant_ops(about.owner)])
    alike = partial(
        pitfalls.similar_of,
        results[: len(ops)],
        about.goal,
        about.now,
        min_confidence=given.min_confidence,
        limit=MOST,
        skills=skills,
    )
    similar = await _beside(about, alike)
    return Lessons(
        task_id=about.task_id,
        pitfalls=tuple(_known(each) for each in similar),
        instructions=instructions_of(
            _items(results[len(ops) :]),
            owner=about.owner,
            task_id=about.task_id,
            actors=about.actors,
            observing=about.observing,
        ),
    )


async def _beside(about: About, work: Callable[[], T]) -> T:
    """Do what takes time off the run's loop; who observes has a loop of its own.

    It may do so until the process ends, when there are no threads any more.
    """
    return work() if about.observing else await in_thread(work)


def _items(results: Iterable[Result]) -> Iterator[Item]:
    for found in results:
        if isinstance(found, list):
            yield from (each for each in found if isinstance(each, SearchItem))


def _known(pitfall: Pitfall) -> KnownPitfall:
    """Return what is told of it; keys were masked when it was kept, and foreign stores exist."""
    return KnownPitfall(
        id=pitfall.id,
        text=kept_line(pitfall.text),
        advice=kept_line(pitfall.advice),
        actor=kept_line(pitfall.actor),
        tasks=pitfall.tasks,
        confidence=round(pitfall.confidence, 3),
    )
