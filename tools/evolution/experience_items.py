"""Experiences as a store keeps them: written as JSON, read back with care."""

from typing import Final

from langgraph.store.base import BaseStore, Item
from pydantic import TypeAdapter

from daruma.state.digest import digest
from daruma.state.experience import Experience
from daruma.tools.evolution.kept import plain, valid
from daruma.tools.evolution.places import shelf

_EXPERIENCE: Final[TypeAdapter[Experience]] = TypeAdapter(Experience)


def key_of(experience: Experience) -> str:
    """Return the key that a task's experience is kept under: one for each task."""
    return digest(experience.task_id)


async def put_experience(experience: Experience, store: BaseStore) -> None:
    """Put a task on record, in place of what was on record of it. Raises what the store does."""
    place, value = shelf(experience.owner, "experiences"), plain(_EXPERIENCE, experience)
    await store.aput(place, key_of(experience), value, index=["goal"])


def experience_in(item: Item | None) -> Experience | None:
    """Return what an item holds; None for none, and for what is of another form."""
    return valid(_EXPERIENCE, item)
