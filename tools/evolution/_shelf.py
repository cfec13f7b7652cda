"""Records of evolution in a LangGraph store: where they are kept, and reading them (EV-04)."""

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeVar

from langgraph.store.base import BaseStore, Item
from pydantic import TypeAdapter, ValidationError

from daruma.state.lessons import Experience
from daruma.state.text import digest
from daruma.tools.memory import store_label

# --- Where experience is kept: in namespaces of its owner's, apart from everybody else's (EV-04).

EVOLUTION_NAMESPACE: Final = ("daruma", "evolution")

Shelf = Literal[
    "experiences", "pitfalls", "evidence", "recoveries", "variants", "outcomes", "upkeep"
]
"""What an owner has: one namespace of each kind, or one beneath it for each thing of that kind."""


def shelf(owner: str, kind: Shelf, *of: str) -> tuple[str, ...]:
    """Return the namespace of an owner's things of a kind; of one thing, named by ``of``."""
    return (*EVOLUTION_NAMESPACE, store_label(owner), kind, *map(store_label, of))


# --- Records as a store keeps them: read back with care, as others have written them too.

T = TypeVar("T")
Namespace = tuple[str, ...]

PAGE: Final = 500
"""Items that are read from a store at once."""


def plain(adapter: TypeAdapter[T], value: T) -> dict[str, Any]:
    """Return a record as the JSON-able value that a store keeps."""
    found: dict[str, Any] = adapter.dump_python(value, mode="json")
    return found


def valid(adapter: TypeAdapter[T], item: Item | None) -> T | None:
    """Return the record that an item holds; None for one that is not there or does not fit."""
    if item is None:
        return None
    try:
        return adapter.validate_python(item.value)
    except ValidationError:
        return None


def valid_in(adapter: TypeAdapter[T], items: Iterable[Item], place: Namespace) -> list[T]:
    """Return the records of the items that lie in a namespace itself, and fit."""
    found = (valid(adapter, item) for item in items if tuple(item.namespace) == place)
    return [each for each in found if each is not None]


async def all_in(store: BaseStore, adapter: TypeAdapter[T], place: Namespace, most: int) -> list[T]:
    """Return the records in a namespace, at most as many as the first ``most`` items hold."""
    found: list[T] = []
    for offset in range(0, most, PAGE):
        items = await store.asearch(place, limit=min(PAGE, most - offset), offset=offset)
        found += valid_in(adapter, items, place)
        if len(items) < PAGE:
            break
    return found


# --- Experiences as a store keeps them: written as JSON, read back with care.

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
