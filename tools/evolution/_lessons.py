"""What a task is given of what earlier ones taught, and what it would have been given (EV-05)."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from langgraph.store.base import BaseStore

from daruma.state.events import LessonsGiven
from daruma.state.lessons import Experience, KnownPitfall, Lessons, Pitfall, WouldHave
from daruma.state.mode import KEEP_WORKING, Mode
from daruma.state.settings import Settings
from daruma.state.task import Task
from daruma.state.text import printable_line
from daruma.tools.context import Context
from daruma.tools.evolution._pitfalls import Pitfalls
from daruma.tools.evolution._recoveries import counterfactual_actions
from daruma.tools.evolution._shelf import experiences, found_in
from daruma.tools.evolution._text import skills_about, storable_line
from daruma.tools.evolution._variants import instructions_of, variant_ops
from daruma.tools.team import team_of
from daruma.tools.text import RANKED_ITEMS, without_keys
from daruma.tools.threads import in_thread

# --- Waiting for something that only helps: no longer than it is worth, whatever becomes of it.

T = TypeVar("T")


class GaveUp(Exception):  # it is what happened
    """Raised where what was waited for was cancelled by somebody else."""


async def finish_within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return what some work comes to. Raises what it raises, TimeoutError, :class:`GaveUp`.

    At the limit it is cancelled and left alone: what does not heed that is not waited for, as
    `asyncio.timeout` would.
    """
    task = asyncio.ensure_future(work)
    # An error that comes too late is taken note of, so that nobody is told that it was lost.
    task.add_done_callback(lambda late: late.cancelled() or late.exception())
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    finally:
        task.cancel()
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    if task.cancelled():
        raise GaveUp("it was given up")
    return task.result()


# --- Looking up what earlier tasks have taught of one like this: one call of the store (EV-05).

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


async def look_up_lessons(about: About, store: BaseStore, settings: Settings) -> Lessons:
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
        near=await pitfalls.nearest(ops, results[: len(ops)], given.min_similarity),
    )
    similar = await _beside(about, alike)
    return Lessons(
        task_id=about.task_id,
        pitfalls=tuple(_known(each) for each in similar),
        instructions=instructions_of(
            [each for found in results[len(ops) :] for each in found_in(found)],
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


def _known(pitfall: Pitfall) -> KnownPitfall:
    """Return what is told of it; keys were masked when it was kept, and foreign stores exist."""
    return KnownPitfall(
        id=pitfall.id,
        text=storable_line(pitfall.text),
        advice=storable_line(pitfall.advice),
        actor=storable_line(pitfall.actor),
        tasks=pitfall.tasks,
        confidence=round(pitfall.confidence, 3),
    )


# --- What a task is given of what earlier ones taught: looked up once, when it begins (EV-05).

SECONDS: Final = 2.0
"""A task does not wait longer for its lessons: they stand beside what it waits for anyway."""


async def _found(task: Task, context: Context, store: BaseStore) -> Lessons:
    team = await team_of(task, context.settings)
    about = About(
        task_id=task.id,
        owner=task.experience_owner,
        goal=task.goal,
        mode=task.mode,
        experts=tuple(team.names) if team else (),
        now=context.now(),
    )
    return await look_up_lessons(about, store, context.settings)


async def lessons_for(task: Task, context: Context, *, seconds: float = SECONDS) -> Lessons | None:
    """Return the lessons for a task; None where none are fed back, or there are none.

    None in direct chat, without a store, with evolution off or observing. A store that fails or is
    slow costs the task its lessons and at most ``seconds``, and the note says so; it never raises.
    It is asked on the run's own event loop, as stores may be bound to it: one that blocks that loop
    blocks the run's checkpoints as well.
    """
    store = context.store
    if store is None or not feeds_back(task, context):
        return None
    try:
        found = await finish_within(_found(task, context, store), seconds)
    except Exception as error:  # noqa: BLE001  # whatever a store raises: lessons only help
        reason = printable_line(without_keys(str(error))) or type(error).__name__
        return Lessons(
            task_id=task.id, note=f"no lessons of earlier tasks were looked up: {reason}"
        )
    return found if found.given else None


def feeds_back(task: Task, context: Context) -> bool:
    """Whether a task is given what earlier ones have taught."""
    given = context.settings.evolution
    wanted = given.enabled and not given.observe_only and task.mode != "direct_chat"
    return wanted and context.store is not None


def report_lessons(lessons: Lessons | None, context: Context) -> Lessons | None:
    """Tell of the lessons that a task is given, and return them."""
    if lessons is not None:
        pitfalls = tuple(each.id for each in lessons.pitfalls)
        variants = tuple(each.variant for each in lessons.instructions)
        context.emit(LessonsGiven(pitfalls=pitfalls, variants=variants, note=lessons.note))
    return lessons


# --- What a task would have been given, worked out after it has ended: for who only looks on.

LOG: Final = logging.getLogger("daruma.evolution")


async def work_out_counterfactual(
    experience: Experience, store: BaseStore, settings: Settings
) -> WouldHave | None:
    """Return what a task would have been given, and say so in the log; None for nothing.

    To be asked before anything of the task itself is learned.
    """
    about = About(
        task_id=experience.task_id,
        owner=experience.owner,
        goal=experience.goal,
        mode=experience.mode,
        now=experience.at,
        experts=tuple(sorted({each.actor for each in experience.setbacks})),
        observing=True,
    )
    lessons = await look_up_lessons(about, store, settings)
    actions = await counterfactual_actions(experience, store, settings)
    told = [
        f"{each.strategy}{f' {each.tool_name}' if each.tool_name else ''}, "
        f"sure by {each.confidence:.2f}, against {signature}"
        for signature, each in actions.items()
    ]
    found = WouldHave(lessons=lessons, actions=tuple(map(storable_line, told)))
    given = render_counterfactual(found)
    LOG.info("task %s would have been given %s", experience.task_id, given)
    return found if found.anything else None


async def counterfactual_lessons(store: BaseStore, owner: str, limit: int) -> list[Experience]:
    """Return the tasks on record that would have been given something, the newest first.

    At most ``limit``, of those that the store gives first: ``RANKED_ITEMS`` of them.
    """
    read = await experiences(store, owner).all(RANKED_ITEMS)
    found = [each for each in read if each.would_have]
    return sorted(found, key=lambda each: (-each.at, each.task_id))[:limit]


def render_counterfactual(found: WouldHave) -> str:
    """Say on one line what would have been fed back."""
    lessons: Lessons = found.lessons
    parts = (
        *(f"pitfall {each.id}" for each in lessons.pitfalls),
        *(f"instruction {each.variant} ({each.arm})" for each in lessons.instructions),
        *found.actions,
    )
    return "; ".join(parts) or "nothing"
