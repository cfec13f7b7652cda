"""That a variant was taken back by a person: a fact of its own, which no decision undoes."""

from typing import Final

from langgraph.store.base import BaseStore
from pydantic import TypeAdapter

from daruma.state.record import record
from daruma.tools.evolution.kept import plain, valid
from daruma.tools.evolution.places import shelf

_KEY: Final = "withdrawn"


@record
class Withdrawal:
    """Why a variant was withdrawn, and when: Unix time in seconds."""

    why: str
    at: float
    schema_version: int = 1


_WITHDRAWAL: TypeAdapter[Withdrawal] = TypeAdapter(Withdrawal)


async def withdraw(store: BaseStore, owner: str, variant: str, given: Withdrawal) -> None:
    """Put on record that a variant was withdrawn."""
    value = plain(_WITHDRAWAL, given)
    await store.aput(shelf(owner, "outcomes", variant, _KEY), _KEY, value, index=False)


async def withdrawn(store: BaseStore, owner: str, variant: str) -> Withdrawal | None:
    """Return what is on record of a variant's withdrawal; None if there is nothing."""
    return valid(_WITHDRAWAL, await store.aget(shelf(owner, "outcomes", variant, _KEY), _KEY))
