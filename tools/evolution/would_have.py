"""What a task would have been given, worked out after it has ended: for who only looks on."""

import logging
from itertools import starmap
from typing import Final

from langgraph.store.base import BaseStore

from daruma.state.experience import Experience
from daruma.state.lessons import Lessons
from daruma.state.recovery import RecoveryAction
from daruma.state.settings import Settings
from daruma.state.would_have import WouldHave
from daruma.tools.evolution.experience_items import experience_in
from daruma.tools.evolution.kept_text import kept_line
from daruma.tools.evolution.looking_up import About, looked_up
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.recovery_patterns import would_recover
from daruma.tools.finding import READ

LOG: Final = logging.getLogger("daruma.evolution")


async def would_have(
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
    lessons = await looked_up(about, store, settings)
    actions = await would_recover(experience, store, settings)
    found = WouldHave(lessons=lessons, actions=tuple(starmap(_in_words, actions.items())))
    _log(experience, found)
    return found if found.anything else None


async def would_have_been(store: BaseStore, owner: str, limit: int) -> list[Experience]:
    """Return the tasks on record that would have been given something, the newest first.

    At most ``limit``, of those that the store gives first: ``READ`` of them.
    """
    place = shelf(owner, "experiences")
    items = await store.asearch(place, limit=READ)
    read = (experience_in(item) for item in items if item.namespace == place)
    found = [each for each in read if each and each.would_have]
    return sorted(found, key=lambda each: (-each.at, each.task_id))[:limit]


def _log(experience: Experience, found: WouldHave) -> None:
    LOG.info("task %s would have been given %s", experience.task_id, in_words(found))


def _in_words(signature: str, action: RecoveryAction) -> str:
    instead = f" {action.tool_name}" if action.tool_name else ""
    text = f"{action.strategy}{instead}, sure by {action.confidence:.2f}, against {signature}"
    return kept_line(text)


def in_words(found: WouldHave) -> str:
    """Say on one line what would have been fed back."""
    lessons: Lessons = found.lessons
    parts = (
        *(f"pitfall {each.id}" for each in lessons.pitfalls),
        *(f"instruction {each.variant} ({each.arm})" for each in lessons.instructions),
        *found.actions,
    )
    return "; ".join(parts) or "nothing"
