"""What the assistant keeps: todos, scheduled tasks, goals and reminders, in the graph's store."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, get_args

from langgraph.store.base import BaseStore

Kind = Literal["todo", "schedule_task", "goal", "reminder"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

MOST: Final = 1000
"""Items of a kind that are looked through."""


class Item(NamedTuple):
    """One thing that is kept; ``fields`` are the arguments it was made with, in canonical form."""

    id: str
    kind: Kind
    fields: Mapping[str, Any]
    done: bool = False

    @property
    def line(self) -> str:
        """The item on one line."""
        told = ", ".join(f"{name}: {value}" for name, value in self.fields.items())
        return f"{self.id} [{'x' if self.done else ' '}] {self.kind}: {told}"


def place(namespace: str | None, kind: Kind) -> tuple[str, ...]:
    """Return the namespace of an owner's items of a kind; stores take no full stop in one."""
    owner = (namespace or "default").replace("%", "%25").replace(".", "%2E")
    return ("daruma", "assistant", owner, kind)


def id_of(kind: Kind, fields: Mapping[str, Any], key: str, now: float) -> str:
    """Return the id of a new item: that of the call by ``key``, so that a repeat makes no second.

    Without a key it is made of the item and of when it is made.
    """
    made = key or json.dumps([kind, dict(fields), now], sort_keys=True, default=str)
    return f"{kind[0]}-{hashlib.sha256(f'{kind} {made}'.encode()).hexdigest()[:12]}"


async def keep(store: BaseStore, namespace: str | None, item: Item, now: float) -> None:
    """Keep an item under its id, in place of what is there."""
    at = datetime.fromtimestamp(now).astimezone().isoformat(timespec="seconds")
    value = {"kind": item.kind, "fields": dict(item.fields), "done": item.done, "at": at}
    await store.aput(place(namespace, item.kind), item.id, value, index=False)


async def find(store: BaseStore, namespace: str | None, id_: str) -> Item | None:
    """Return the item of an id, None if there is none."""
    for kind in KINDS:
        found = await store.aget(place(namespace, kind), id_)
        if found is not None:
            return _read(found.key, kind, found.value)
    return None


async def remove(store: BaseStore, namespace: str | None, item: Item) -> None:
    """Forget an item."""
    await store.adelete(place(namespace, item.kind), item.id)


async def items(store: BaseStore, namespace: str | None, kind: Kind | None) -> list[Item]:
    """Return the items of a kind, or all, the open ones and the earliest date first."""
    found = [
        _read(each.key, one, each.value)
        for one in ((kind,) if kind else KINDS)
        for each in await store.asearch(place(namespace, one), limit=MOST)
    ]
    return sorted(found, key=lambda item: (item.done, _when(item), item.id))


def _read(id_: str, kind: Kind, value: Mapping[str, Any]) -> Item:
    return Item(id_, kind, value.get("fields", {}), bool(value.get("done")))


def _when(item: Item) -> str:
    """Return the first date of an item, in a form that sorts; what has none comes last."""
    dates = [str(value) for name, value in item.fields.items() if name not in ("title", "notes")]
    return min(dates, default="~")
