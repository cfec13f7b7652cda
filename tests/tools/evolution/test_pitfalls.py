"""Pitfalls in a store: the same, whatever the order, and whoever does the same meanwhile."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from tests.damages import KEY
from tests.tools.evolution.ended_tasks import (
    PARSER,
    ROUNDING,
    a_setback,
    an_experience,
    on_record,
    told_of,
)
from typing_extensions import override

from daruma.graph.storage.postgres import open_postgres
from daruma.state.lessons import Pitfall
from daruma.tools.evolution.evidence import EVIDENCE, seen_in
from daruma.tools.evolution.pitfalls import MOST_FACTS, Pitfalls
from daruma.tools.evolution.shelf import shelf

LEAST = 0.5
OTHER = "Fix how invoices are rounded in bill/split.py"
FACTS = [
    (a_setback(ended=False, text="first"), an_experience(1)),
    (a_setback(text="second", advice="look twice"), an_experience(2, goal=OTHER)),
    (a_setback(), an_experience(3, goal=PARSER)),
    (a_setback("tool:shout", kind="tool"), an_experience(3, goal=PARSER)),
    (a_setback(actor="plan"), an_experience(4)),
]


class Counting(InMemoryStore):
    """A store that counts its calls."""

    calls = 0

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        self.calls += 1
        return await super().abatch(ops)


class Noting(InMemoryStore):
    """A store that notes what is written of pitfalls."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        given_ = list(ops)
        puts = [each for each in given_ if isinstance(each, PutOp)]
        self.written += [each.key for each in puts if each.namespace == shelf("o", "pitfalls")]
        return await super().abatch(given_)


class Slow(InMemoryStore):
    """A store that lets others in before each of its operations, so many times as it is told."""

    def __init__(self, turns: Sequence[int]) -> None:
        super().__init__()
        self.turns = cycle(turns)

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        for _ in range(next(self.turns)):
            await asyncio.sleep(0)
        return await super().abatch(ops)


@pytest.fixture(params=["memory", "postgres", "sealed"])
def store(request: pytest.FixtureRequest) -> Iterator[BaseStore]:
    if request.param == "memory":
        yield InMemoryStore()
        return
    url = request.getfixturevalue("postgres_url")
    with open_postgres(url, key=KEY if request.param == "sealed" else None) as pg:
        yield pg.store


async def observed(store: BaseStore, facts: Any = FACTS) -> list[Pitfall]:
    """All pitfalls after facts became known."""
    pitfalls = Pitfalls(store, "o")
    for setback, experience in facts:
        await on_record(pitfalls, setback, experience, LEAST)
    return await pitfalls.all()


async def test_a_pitfall_is_of_one_actor_one_failure_and_one_kind_of_goal(
    store: BaseStore,
) -> None:
    """Two different tasks with one generic error are two pitfalls."""
    found = await observed(store)

    told = {(each.actor, each.signature, each.goals, each.tasks) for each in found}
    assert told == {
        ("main", "check:pytest:test_sum", (OTHER, ROUNDING), 2),
        ("main", "check:pytest:test_sum", (PARSER,), 1),
        ("main", "tool:shout", (PARSER,), 1),
        ("plan", "check:pytest:test_sum", (ROUNDING,), 1),
    }
    assert [each.last_at for each in found] == sorted((e.last_at for e in found), reverse=True)


async def test_what_was_told_last_is_kept_of_it(store: BaseStore) -> None:
    """The text of the newest task, and the newest advice there is."""
    (found,) = [each for each in await observed(store) if each.tasks == 2]

    assert (found.text, found.advice) == ("second", "look twice")
    assert (found.first_at, found.last_at) == (1, 2)
    assert (found.owner, found.level) == ("o", "high")


@settings(max_examples=30)
@given(st.lists(st.integers(0, len(FACTS) - 1), max_size=8), st.permutations(FACTS))
def test_order_and_repetition_make_no_difference(again: list[int], order: list[Any]) -> None:
    """EV-03: a job that is done twice, or late, ends alike."""

    async def both() -> tuple[list[Pitfall], list[Pitfall]]:
        shuffled = [*order, *(FACTS[n] for n in again)]
        return await observed(InMemoryStore()), await observed(InMemoryStore(), shuffled)

    one, other = asyncio.run(both())

    assert one == other


@settings(max_examples=20)
@given(st.permutations(FACTS * 2), st.lists(st.integers(0, 9), min_size=5, max_size=20))
def test_many_at_once_end_alike(order: list[Any], turns: list[int]) -> None:
    """Stores have no compare-and-set: who was late looks again."""

    async def at_once() -> list[Pitfall]:
        pitfalls = Pitfalls(Slow(turns), "o")
        await asyncio.gather(*(on_record(pitfalls, met, task, LEAST) for met, task in order))
        return await pitfalls.all()

    assert asyncio.run(at_once()) == asyncio.run(observed(InMemoryStore()))


async def test_two_processes_at_once_end_alike(postgres_url: str) -> None:
    """The same on Postgres, over two pools."""
    facts = [(a_setback(), an_experience(n)) for n in range(1, 7)]
    with open_postgres(postgres_url) as one, open_postgres(postgres_url) as other:
        each = [Pitfalls(pg.store, "o") for pg in (one, other)]
        await asyncio.gather(*(on_record(p, *fact, LEAST) for p in each for fact in facts))
        found = await each[0].all()

    assert found == await observed(InMemoryStore(), facts)


async def test_a_pitfall_fits_the_goal_that_comes_again(store: BaseStore) -> None:
    """EV-05: one failure is enough where the goal is nearly the same; no other goal gets it."""
    await observed(store)
    pitfalls = Pitfalls(store, "o")

    again = await pitfalls.similar("Document the config parser's options", 9, min_confidence=LEAST)
    other = await pitfalls.similar("Speed up the login page", 9, min_confidence=LEAST)

    assert {each.goals for each in again} == {(PARSER,)}
    assert len(again) == 2
    assert other == []


@pytest.mark.parametrize(
    "setback",
    [a_setback(ended=False), a_setback("tool:x", kind="tool", ended=False)],
    ids=["check", "tool"],
)
async def test_what_was_overcome_is_no_high_one(setback: Any) -> None:
    """It is kept, as medium, and nobody is told."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    found = await on_record(pitfalls, setback, an_experience(), LEAST)

    assert found.level == "medium"
    assert await pitfalls.similar(ROUNDING, 1, min_confidence=LEAST) == []


async def test_what_a_person_rejected_is_high() -> None:
    """Though the task went on and was completed."""
    objection = a_setback("person:plan:no", kind="person", ended=False)
    found = await on_record(Pitfalls(InMemoryStore(), "o"), objection, an_experience(), LEAST)

    assert found.level == "high"


async def test_the_confidence_is_checked_when_it_is_read() -> None:
    """With the age of then, and the setting of then: 30 days later one task is too little."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    low = await on_record(pitfalls, a_setback(), an_experience(), 0.7)
    later = 30 * 86_400.0

    assert low.level == "low"
    assert await pitfalls.similar(ROUNDING, 1, min_confidence=0.7) == []
    (now_high,) = await pitfalls.similar(ROUNDING, 1, min_confidence=0.6)
    assert now_high.level == "high"
    assert await pitfalls.similar(ROUNDING, later, min_confidence=0.6) == []


async def test_three_at_most_in_the_same_order(store: BaseStore) -> None:
    """The most alike first, then the surer, then by id."""
    for n in range(5):
        given_ = (a_setback(f"check:{n}"), an_experience(n))
        await on_record(Pitfalls(store, "o"), *given_, LEAST)
    await on_record(Pitfalls(store, "o"), a_setback("check:4"), an_experience(9), LEAST)

    found = await Pitfalls(store, "o").similar(ROUNDING, 9, min_confidence=LEAST)

    assert [each.signature for each in found][:1] == ["check:4"]
    assert [each.id for each in found[1:]] == sorted(each.id for each in found[1:])
    assert len(found) == 3


async def test_a_skill_in_common_counts_a_little() -> None:
    """EV-05: by goal text and skills."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    await on_record(pitfalls, a_setback(), an_experience(skills=("pdf",)), LEAST)
    near = "Fix the rounding of taxes in bill/totals.py"

    assert await pitfalls.similar(near, 1, min_confidence=LEAST) == []
    assert await pitfalls.similar(near, 1, min_confidence=LEAST, skills=["pdf"])


@pytest.mark.parametrize("shared", [False, True])
async def test_looking_up_is_one_call_of_the_store(shared: bool) -> None:
    """EV-05: one query, with others' pitfalls too."""
    store = Counting()
    await observed(store)
    store.calls = 0

    await Pitfalls(store, "o", shared=shared).similar(ROUNDING, 1, min_confidence=LEAST)

    assert store.calls == 1


async def test_operations_may_be_part_of_a_larger_batch() -> None:
    """Whoever looks other things up at the same time makes no second call."""
    store = InMemoryStore()
    await observed(store)
    pitfalls = Pitfalls(store, "o", shared=True)
    ops: list[Op] = pitfalls.similar_ops(PARSER)

    found = pitfalls.similar_of(await store.abatch(ops), PARSER, 9, min_confidence=LEAST)

    assert found == await pitfalls.similar(PARSER, 9, min_confidence=LEAST)
    assert len(found) == 2


async def test_a_forgotten_pitfall_is_gone_with_its_evidence(store: BaseStore) -> None:
    """The others of its failure stay."""
    found = await observed(store)
    (gone,) = [each for each in found if each.tasks == 2]
    pitfalls = Pitfalls(store, "o")
    assert [each.task for each in await pitfalls.evidence(gone.id)] == ["t1/1", "t2/1"]

    assert await pitfalls.forget(gone.id)

    assert await pitfalls.get(gone.id) is None
    assert await pitfalls.evidence(gone.id) == []
    assert await pitfalls.all() == [each for each in found if each.id != gone.id]
    assert not await pitfalls.forget(gone.id)


@pytest.mark.parametrize("id_", ["", "x", "é" * 300, "0" * 12 + "-" + "0" * 8, "nul\0", "\ud83d"])
async def test_an_id_that_is_none_finds_nothing(id_: str) -> None:
    """And is no error."""
    pitfalls = Pitfalls(InMemoryStore(), "o", shared=True)

    assert await pitfalls.get(id_) is None
    assert await pitfalls.evidence(id_) == []
    assert not await pitfalls.forget(id_)


async def test_what_fits_no_record_is_skipped() -> None:
    """Older, foreign or damaged values are as good as none."""
    store = InMemoryStore()
    (before, *_) = await observed(store, FACTS[:1])
    place, group = shelf("o", "pitfalls"), before.id.partition("-")[0]
    item = await store.aget(place, before.id)
    assert item
    values: list[dict[str, Any]] = [{}, {"pitfall": 1, "grave": True}, {"about": ROUNDING}]
    for n, value in enumerate([*values, item.value]):
        await store.aput(place, f"x{n}", value)
    await store.aput(shelf("o", "evidence", group), "x", {"task": 3})

    assert await Pitfalls(store, "o").all() == [before]
    assert await observed(store, FACTS[:1]) == [before]


async def test_what_was_told_and_came_again_is_counted() -> None:
    """It is on record that telling did not help."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    first = await on_record(pitfalls, a_setback(), an_experience(1), LEAST)
    told = an_experience(2, lessons=told_of(first.id, task="t2/1"))

    again = await on_record(pitfalls, a_setback(), told, LEAST)

    assert (again.id, again.tasks, again.repeated) == (first.id, 2, 1)


async def test_more_tasks_than_are_counted_change_neither_name_nor_what_can_be_forgotten(
    store: BaseStore,
) -> None:
    """The newest count, each new one is seen, and nothing is left that would bring it back."""
    pitfalls = Pitfalls(store, "o")
    facts = [seen_in(a_setback(), an_experience(number)) for number in range(1, MOST_FACTS + 1)]
    place = shelf("o", "evidence", facts[0].group)
    values = {each.key: EVIDENCE.dump_python(each, mode="json") for each in facts}
    await store.abatch([PutOp(place, key, value, False) for key, value in values.items()])

    more = [await on_record(pitfalls, a_setback(), an_experience(n), LEAST) for n in (1001, 1002)]

    assert [each.id for each in more] == [(await pitfalls.all())[0].id] * 2
    assert [(each.tasks, each.first_at, each.last_at) for each in more] == [
        (MOST_FACTS, 1.0, 1001.0),
        (MOST_FACTS, 1.0, 1002.0),
    ]
    assert await pitfalls.forget(more[0].id)
    assert await store.asearch(place) == []


async def test_what_a_task_says_nothing_new_of_is_not_written_again() -> None:
    """A failure that any task can meet has many pitfalls; a task changes one of them."""
    store = Noting()
    assert len(await observed(store, FACTS[1:3])) == 2
    store.written.clear()

    met = await on_record(Pitfalls(store, "o"), a_setback(), an_experience(9, goal=PARSER), LEAST)

    assert store.written == [met.id]
