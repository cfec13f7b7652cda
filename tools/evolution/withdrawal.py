"""That a variant was taken back by a person: a fact of its own, which no decision undoes."""

from typing import Final

from langgraph.store.base import BaseStore

from daruma.tools.evolution.places import shelf

_KEY: Final = "withdrawn"


async def withdraw(store: BaseStore, owner: str, variant: str, why: str) -> None:
    """Put on record that a variant was withdrawn, and why."""
    await store.aput(shelf(owner, "outcomes", variant, _KEY), _KEY, {"why": why}, index=False)


async def withdrawn(store: BaseStore, owner: str, variant: str) -> str:
    """Return why a variant was withdrawn; empty if it was not."""
    item = await store.aget(shelf(owner, "outcomes", variant, _KEY), _KEY)
    return str(item.value.get("why") or _KEY) if item else ""
