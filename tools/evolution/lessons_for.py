"""What a task is given of what earlier ones taught: looked up once, when it begins (EV-05)."""

from typing import Final

from langgraph.store.base import BaseStore

from daruma.state.events import LessonsGiven
from daruma.state.lessons import Lessons
from daruma.state.printable_line import printable_line
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.evolution.in_time import in_time
from daruma.tools.evolution.looking_up import About, looked_up
from daruma.tools.key_masking import without_keys
from daruma.tools.team.team_of import team_of

SECONDS: Final = 2.0
"""A task does not wait longer for its lessons: they stand beside what it waits for anyway."""


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
        found = await in_time(_found(task, context, store), seconds)
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


def told(lessons: Lessons | None, context: Context) -> Lessons | None:
    """Tell of the lessons that a task is given, and return them."""
    if lessons is not None:
        pitfalls = tuple(each.id for each in lessons.pitfalls)
        variants = tuple(each.variant for each in lessons.instructions)
        context.emit(LessonsGiven(pitfalls=pitfalls, variants=variants, note=lessons.note))
    return lessons


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
    return await looked_up(about, store, context.settings)
