"""All that is learned from one ended task, step by step (EV-03)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import BaseStore, Item
from pydantic import TypeAdapter, ValidationError

from daruma.state.digest import digest
from daruma.state.experience import Experience
from daruma.state.settings import Settings
from daruma.tools.evolution.advising import advised
from daruma.tools.evolution.detecting import detect
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.retention import let_go

EXPERIENCE: TypeAdapter[Experience] = TypeAdapter(Experience)


async def nobody(prompt: str, text: str) -> str:  # noqa: ARG001 - an asking
    """Answer nothing: there is no model to ask."""
    return ""


@dataclass(frozen=True)
class Learning:
    """What evolution works with.

    ``ask`` asks the auxiliary model, given a system prompt and a text; it answers with nothing
    where none may be asked.
    """

    store: BaseStore
    settings: Settings = field(default_factory=Settings)
    ask: Callable[[str, str], Awaitable[str]] = nobody


async def learn(experience: Experience, learning: Learning) -> None:
    """Put a task on record, and learn from it. Done twice, it changes nothing the second time."""
    evolution = learning.settings.evolution
    pitfalls = Pitfalls(learning.store, experience.owner, shared=evolution.shared)
    place, key = shelf(experience.owner, "experiences"), digest(experience.task_id)
    before = experience_in(await learning.store.aget(place, key))
    if before and before.at == experience.at:  # done before: a model is not asked again
        experience = before
    else:
        experience = await advised(experience, learning.ask)
    await learning.store.aput(place, key, as_value(experience), index=["goal"])
    await pitfalls.settle_sharing()
    await detect(experience, pitfalls, evolution.min_confidence)
    await let_go(pitfalls, evolution.keep_days, experience.at)


def as_value(experience: Experience) -> dict[str, Any]:
    """Return an experience as the JSON-able value that a store keeps."""
    value: dict[str, Any] = EXPERIENCE.dump_python(experience, mode="json")
    return value


def experience_in(item: Item | None) -> Experience | None:
    """Return the experience that an item of a store holds; None for what holds none."""
    try:
        return EXPERIENCE.validate_python(item.value) if item else None
    except ValidationError:
        return None
