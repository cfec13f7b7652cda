"""Records as a store keeps them: read back with care, as others have written them too."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from langgraph.store.base import BaseStore, Item
from pydantic import TypeAdapter, ValidationError

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
