"""Memories in any of LangGraph's stores: each owner's and each role's apart."""

from dataclasses import replace
from typing import Any

import pytest
from langgraph.store.base import Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from daruma.tools.memory.memories import Memories, checked, namespace_of


class Scoring(InMemoryStore):
    """A store that ranks by itself: the longest text first; and takes prefixes by their text."""

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        (op,) = ops
        return [self._ranked(op)] if isinstance(op, SearchOp) else await super().abatch(ops)

    def _ranked(self, op: SearchOp) -> list[SearchItem]:
        wanted = ".".join(op.namespace_prefix)
        return [
            SearchItem(place, key, item.value, item.created_at, item.updated_at, score)
            for place, items in self._data.items()
            for key, item in items.items()
            if ".".join(place).startswith(wanted)
            for score in [float(len(item.value["text"]))]
        ]


async def filled(store: InMemoryStore) -> Memories:
    """Three memories of one owner: a common one, a tester's and a test's; and one of another."""
    memories = Memories(store, "o")
    for text, role in (("red lamp", ""), ("red light", "tester"), ("red", "test")):
        await memories.remember(checked(text, role=role, at=len(text)))
    await Memories(store, "other").remember(checked("red other"))
    return memories


@pytest.mark.parametrize("store", [InMemoryStore, Scoring])
@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("", {"red lamp"}),
        ("tester", {"red lamp", "red light"}),
        ("test", {"red lamp", "red"}),
        (None, {"red lamp", "red light", "red"}),
    ],
)
async def test_a_role_sees_its_own_and_the_common_ones(
    store: type[InMemoryStore], role: str | None, seen: set[str]
) -> None:
    """CO-04: never another's, and never another owner's."""
    memories = replace(await filled(store()), role=role)

    assert {memory.text for memory in await memories.all()} == seen
    assert {memory.text for memory in await memories.search("red", 9)} == seen


async def test_a_store_that_ranks_is_believed() -> None:
    """By its scores, over all namespaces together."""
    memories = replace(await filled(Scoring()), role=None)

    assert [m.text for m in await memories.search("lamp", 2)] == ["red light", "red lamp"]


async def test_a_store_that_does_not_rank_is_searched_by_words() -> None:
    """LangGraph's stores without an index ignore the query."""
    memories = replace(await filled(InMemoryStore()), role=None)

    assert [m.text for m in await memories.search("the red lamp", 1)] == ["red lamp"]
    assert await memories.search("unheard of", 9) == []


async def test_the_newest_is_listed_first() -> None:
    """With the role that it is for."""
    found = await replace(await filled(InMemoryStore()), role=None).all()

    assert [(m.text, m.role) for m in found] == [
        ("red light", "tester"),
        ("red lamp", ""),
        ("red", "test"),
    ]


async def test_storing_twice_keeps_one() -> None:
    """A call that is made again after a crash leaves what it left before."""
    memories = await filled(InMemoryStore())

    await memories.remember(checked("Red  Lamp", at=99.0), thread="t")

    (only,) = await memories.all()
    assert (only.text, only.at) == ("Red  Lamp", 99.0)


async def test_only_what_is_seen_is_forgotten() -> None:
    """A role can not take away another's memories, even if it knows the id."""
    memories = await filled(InMemoryStore())
    (light,) = (m for m in await replace(memories, role=None).all() if m.text == "red light")

    assert await memories.forget(light.id) == []
    assert await replace(memories, role="tester").forget(light.id) == [light]
    assert await replace(memories, role="tester").forget(light.id) == []


async def test_a_long_role_keeps_its_name() -> None:
    """Its label in the store is not that name."""
    memories, role = Memories(InMemoryStore(), "o", "v1.2"), "v1.2"
    await memories.remember(checked("red", role=role))

    (found,) = await memories.all()

    assert found.role == role
    assert namespace_of("o", role)[-1] != role


async def test_strangers_in_the_store_are_passed_over() -> None:
    """What somebody else put there is neither listed nor found, and does no harm."""
    store = InMemoryStore()
    memories = await filled(store)
    store.put(namespace_of("o"), "strange", {"note": "red lamp"})
    store.put((*namespace_of("o"), "deeper"), "strange", {"text": "red lamp"})

    assert [m.text for m in await memories.search("red lamp", 9)] == ["red lamp"]
    assert len(await memories.all()) == 1
    assert len(await replace(memories, role=None).all()) == 3


def test_the_scoring_store_takes_more_than_was_asked_for() -> None:
    """Without that it would prove nothing about `test` and `tester`."""
    store = Scoring()
    store.put(("a", "tester"), "k", {"text": "x"})

    assert store._ranked(SearchOp(("a", "test")))
