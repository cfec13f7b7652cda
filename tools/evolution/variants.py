"""The variants of an owner's prompts in a store, and which of them a task is given."""

from collections.abc import Iterable
from typing import Final

from langgraph.store.base import BaseStore, Item, SearchOp

from daruma.state.lessons import Instruction
from daruma.tools.evolution.ab_test import arm_of
from daruma.tools.evolution.kept import all_in, plain, valid, valid_in
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.variant import OPEN, VARIANT, Status, Variant, oldest_first, taken_back
from daruma.tools.evolution.withdrawal import Withdrawal, withdraw

LIVE: Final[tuple[Status, ...]] = ("proposed", "testing", "promoted")
MOST_IN_USE: Final = 3
"""Instructions of one actor that are in use at most: a prompt must not grow for ever."""
_LIMIT: Final = 50
_ALL: Final = 1000


class Variants:
    """What was made of one owner's experience for its prompts; another's are not to be seen."""

    def __init__(self, store: BaseStore, owner: str) -> None:
        self._store = store
        self._owner = owner
        self._place = shelf(owner, "variants")

    async def get(self, id_: str) -> Variant | None:
        """Return a variant; None for one that does not exist or is not this owner's."""
        found = valid(VARIANT, await self._store.aget(self._place, id_))
        return found if found and found.owner == self._owner else None

    async def all(self) -> list[Variant]:
        """Return the variants, the newest first."""
        found = await all_in(self._store, VARIANT, self._place, _ALL)
        ours = (each for each in found if each.owner == self._owner)
        return sorted(ours, key=oldest_first, reverse=True)

    async def made_of(self, pitfall: str) -> list[Variant]:
        """Return those made of a pitfall that a prompt may hold: in use, compared, or waiting."""
        return [v for v in await self.all() if v.status in LIVE and pitfall in v.pitfalls]

    async def put(self, variant: Variant) -> None:
        """Keep a variant as it is now."""
        value = plain(VARIANT, variant)
        await self._store.aput(self._place, variant.id, value, index=False)

    async def withdraw(self, id_: str, at: float, why: str = "a person withdrew it") -> bool:
        """Take a variant out of every prompt for good; whether there was one."""
        variant = await self.get(id_)
        if variant is None:
            return False
        given = Withdrawal(why=why, at=at)
        await withdraw(self._store, self._owner, id_, given)
        await self.put(taken_back(variant, given))
        return True


def ops(owner: str) -> list[SearchOp]:
    """Return the reads that :func:`instructions_of` needs, to be made with others in one batch."""
    place = shelf(owner, "variants")
    return [SearchOp(place, filter={"status": status}, limit=_LIMIT) for status in LIVE]


def instructions_of(
    items: Iterable[Item],
    *,
    owner: str,
    task_id: str,
    actors: Iterable[str],
    observing: bool = False,
) -> tuple[Instruction, ...]:
    """Return what a task is given of what :func:`ops` found: what is in use and what is in a test.

    ``actors`` are those that the task has: of another's nothing is given, as it would tell nothing.
    Of each at most one is in a test, and ``MOST_IN_USE`` are in use. With ``observing`` what waits
    counts as if it were in a test: what the task would have been given. Pure.
    """
    found = [v for v in valid_in(VARIANT, items, shelf(owner, "variants")) if v.owner == owner]
    found.sort(key=oldest_first)
    given: list[Variant] = []
    for actor in sorted(set(actors)):
        ours = [each for each in found if each.actor == actor]
        tested = [v for v in ours if v.status == "testing" or (observing and v.status in OPEN)]
        given += [v for v in ours if v.status == "promoted"][:MOST_IN_USE]
        given += tested[:1]
    return tuple(_given(each, task_id) for each in given)


def _given(variant: Variant, task_id: str) -> Instruction:
    arm = arm_of(variant.id, task_id, promoted=variant.status == "promoted")
    return Instruction(
        variant=variant.id,
        actor=variant.actor,
        place=variant.place,
        text="" if arm == "control" else variant.text,
        arm=arm,
    )
