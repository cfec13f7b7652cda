"""EV-04: what others have is not there, unless both share; and nobody changes another's.

Three workspaces do anything, in any order, on a real store; beside it stands a model of what each
has, which is another's only by the one rule.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from tests.tools.evolution.ended_tasks import (
    PARSER,
    ROUNDING,
    a_setback,
    an_experience,
    on_record,
    similar,
)

from daruma.graph.storage import open_postgres
from daruma.state.lessons import Pitfall
from daruma.tools.evolution import Pitfalls

LEAST = 0.5
GOALS = (ROUNDING, PARSER)

OWNERS = st.sampled_from(
    [
        ("/w/app", "/w/app2", "/w/app/sub"),
        ("a", "a.b", "a.b.c"),
        ("проект", "проект 二", "п"),
        ("", "%", "default"),
        ("o", "o\x1f", "O"),
        ("w" * 250, "w" * 251, "w" * 200),
    ]
)
Doing = Literal["observe", "share", "unshare", "forget", "get", "similar", "evidence"]
READINGS: tuple[Doing, ...] = ("get", "similar", "evidence")
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(
            ["observe", "observe", "share", "unshare", "forget", "get", "similar", "evidence"]
        ),
        st.integers(0, 3),
    ),
    max_size=14,
)


@dataclass
class World:
    """The store, and what ought to be in it: each owner's pitfalls, and who shares."""

    store: BaseStore
    owners: Sequence[str]
    shares: set[str] = field(default_factory=set)
    has: dict[str, dict[str, Pitfall]] = field(default_factory=dict)

    def of(self, owner: str) -> Pitfalls:
        return Pitfalls(self.store, owner, shared=owner in self.shares)

    def readable(self, owner: str) -> dict[str, Pitfall]:
        """What an owner may read: its own; where it shares, that of others who do."""
        others = self.shares - {owner} if owner in self.shares else set()
        return {id_: p for each in (owner, *others) for id_, p in self.has.get(each, {}).items()}

    async def do(self, owner: str, what: Doing, number: int) -> None:
        """Do one thing, and hold the answer against what ought to be."""
        pitfalls, own = self.of(owner), self.has.setdefault(owner, {})
        every = sorted(id_ for each in self.has.values() for id_ in each)
        id_ = every[number % len(every)] if every else "0" * 12 + "-" + "0" * 8
        if what == "observe":
            experience = an_experience(number, goal=GOALS[number % 2], owner=owner)
            made = await on_record(pitfalls, a_setback(f"check:{number}"), experience, LEAST)
            own[made.id] = made
        elif what in ("share", "unshare"):
            self.shares ^= {owner} & self.shares if what == "unshare" else {owner} - self.shares
            await self.of(owner).settle_sharing()
        elif what == "forget":
            assert await pitfalls.forget(id_) is (own.pop(id_, None) is not None)
        elif what == "evidence":
            assert bool(await pitfalls.evidence(id_)) is (id_ in own)
        else:
            await self._read(owner, id_, what)

    async def _read(self, owner: str, id_: str, what: Doing) -> None:
        pitfalls, readable = self.of(owner), self.readable(owner)
        if what == "get":
            found = await pitfalls.get(id_)
            assert (found.id if found else None) == (id_ if id_ in readable else None)
        else:
            for goal in GOALS:
                found_now = await similar(pitfalls, goal, 3, LEAST, limit=99)
                assert {p.id for p in found_now} == {
                    p.id for p in readable.values() if goal in p.goals
                }

    async def check(self) -> None:
        """Nobody's calls changed what another has."""
        for owner in self.owners:
            kept = {each.id: replace(each, shared=False) for each in await self.of(owner).all()}
            ought = {id_: replace(p, shared=False) for id_, p in self.has.get(owner, {}).items()}
            assert kept == ought


async def lived(store: BaseStore, owners: Sequence[str], steps: Sequence[Any]) -> None:
    """Do all steps, and look at everything after each."""
    world = World(store, owners)
    for who, what, number in steps:
        await world.do(owners[who], what, number)
        await world.check()
    for owner in owners:
        for reading in READINGS:
            for number in range(4):
                await world.do(owner, reading, number)


@pytest.mark.long
@settings(max_examples=40)
@given(OWNERS, STEPS)
def test_what_others_have_is_not_there(owners: Sequence[str], steps: Sequence[Any]) -> None:
    """Whatever three workspaces do, with names that are beginnings of each other."""
    asyncio.run(lived(InMemoryStore(), owners, steps))


@pytest.mark.long
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OWNERS, STEPS)
def test_nor_on_postgres(postgres_url: str, owners: Sequence[str], steps: Sequence[Any]) -> None:
    """The same, in a store that ranks, filters by an index, and is another's as well."""
    with open_postgres(postgres_url) as pg:
        for item in pg.store.search(("daruma",), limit=1000):
            pg.store.delete(item.namespace, item.key)
        asyncio.run(lived(pg.store, owners, steps))


async def test_sharing_has_two_sides() -> None:
    """One that shares alone neither shows anything nor sees anything; and it can be taken back."""
    store = InMemoryStore()
    world = World(store, ("a", "ab"))
    for owner in world.owners:
        await world.do(owner, "observe", 1)
    theirs = next(iter(world.has["ab"]))

    async def seen() -> bool:
        return await world.of("a").get(theirs) is not None

    assert not await seen()
    await world.do("a", "share", 0)
    assert not await seen()
    await world.do("ab", "share", 0)
    assert await seen()
    assert {p.owner for p in await similar(world.of("a"), ROUNDING, 1, LEAST)} <= {
        "a",
        "ab",
    }
    await world.do("ab", "unshare", 0)
    assert not await seen()


async def test_a_mark_in_anothers_namespace_is_believed_of_pitfalls_alone() -> None:
    """What only says that it is shared, and lies where no pitfalls do, is nobody's lesson."""
    store = InMemoryStore()
    world = World(store, ("a", "b"))
    await world.do("b", "observe", 1)
    await world.do("b", "share", 1)
    item = await store.aget(world.of("b").kept.place, next(iter(world.has["b"])))
    assert item
    await store.adelete(item.namespace, item.key)
    await store.aput(("daruma", "evolution", "c", "pitfalls"), item.key, item.value)

    found = await similar(Pitfalls(store, "a", shared=True), PARSER, 1, LEAST)

    assert found == []
