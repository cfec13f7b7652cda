"""Records of evolution in a LangGraph store: where they are kept, and reading them (EV-04)."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar

from langgraph.store.base import BaseStore, Item, PutOp, Result
from pydantic import TypeAdapter, ValidationError

from daruma.state.lessons import Experience
from daruma.state.text import digest
from daruma.tools.memory import store_label

EVOLUTION_NAMESPACE: Final = ("daruma", "evolution")

PAGE: Final = 500
"""Items that are read from a store at once."""

Kind = Literal[
    "experiences", "pitfalls", "evidence", "recoveries", "variants", "outcomes", "upkeep"
]
"""What an owner has: one namespace of each kind, or one beneath it for each thing of that kind."""

Namespace = tuple[str, ...]
Record = TypeVar("Record")


def shelf(owner: str, kind: Kind, *of: str) -> Namespace:
    """Return the namespace of an owner's things of a kind; of one thing, named by ``of``."""
    return (*EVOLUTION_NAMESPACE, store_label(owner), kind, *map(store_label, of))


_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def read_record(form: type[Record], item: Item | None) -> Record | None:
    """Return the record that an item holds; None for one that is not there or does not fit."""
    with suppress(ValidationError):
        read: Record | None = _adapter(form).validate_python(item.value) if item else None
        return read
    return None


def found_in(result: Result) -> list[Item]:
    """Return the items that a search of a batch came to."""
    found = result if isinstance(result, list) else []
    return [each for each in found if isinstance(each, Item)]


@dataclass(frozen=True)
class Shelf(Generic[Record]):
    """The records of one form in one namespace of a store; what else lies there is passed over.

    ``found_by`` are the fields that they are searched by. All of it raises what the store raises.
    """

    store: BaseStore
    form: type[Record]
    place: Namespace
    found_by: tuple[str, ...] = ()

    def own(self, items: Iterable[Item]) -> list[Item]:
        """Return the items that lie here: a store may take a namespace for the begin of others."""
        return [item for item in items if tuple(item.namespace) == self.place]

    def read(self, items: Iterable[Item]) -> list[Record]:
        """Return the records of those items that lie here and fit."""
        found = (read_record(self.form, item) for item in self.own(items))
        return [each for each in found if each is not None]

    async def get(self, key: str) -> Record | None:
        """Return a record by its key."""
        return read_record(self.form, await self.store.aget(self.place, key))

    async def all(self, most: int = 1000, **filter_: Any) -> list[Record]:
        """Return the records, at most as many as the first ``most`` items hold."""
        found: list[Record] = []
        for offset in range(0, most, PAGE):
            limit = min(PAGE, most - offset)
            items = await self.store.asearch(
                self.place, filter=filter_ or None, limit=limit, offset=offset
            )
            found += self.read(items)
            if len(items) < limit:
                break
        return found

    def to_put(self, key: str, value: Record) -> PutOp:
        """Return the operation that keeps a record."""
        plain = _adapter(self.form).dump_python(value, mode="json")
        return PutOp(self.place, key, plain, list(self.found_by) or False)

    async def put(self, key: str, value: Record) -> None:
        """Keep a record in place of what has its key."""
        await self.store.abatch([self.to_put(key, value)])

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete what has those keys."""
        if gone := [PutOp(self.place, key, None) for key in keys]:
            await self.store.abatch(gone)

    async def delete_all(self, most: int, **filter_: Any) -> int:
        """Delete what lies here, records or not, ``most`` at most; return how many there were."""
        items = await self.store.asearch(self.place, filter=filter_ or None, limit=most)
        keys = [item.key for item in self.own(items)]
        await self.delete(keys)
        return len(keys)


# --- Experiences: one for each task, found by its goal.


def experiences(store: BaseStore, owner: str) -> Shelf[Experience]:
    """Return the tasks that an owner has on record."""
    return Shelf(store, Experience, shelf(owner, "experiences"), ("goal",))


def key_of(experience: Experience) -> str:
    """Return the key that a task's experience is kept under: one for each task."""
    return digest(experience.task_id)


async def put_experience(experience: Experience, store: BaseStore) -> None:
    """Put a task on record, in place of what was on record of it."""
    await experiences(store, experience.owner).put(key_of(experience), experience)


def experience_in(item: Item | None) -> Experience | None:
    """Return what an item holds; None for none, and for what is of another form."""
    return read_record(Experience, item)
