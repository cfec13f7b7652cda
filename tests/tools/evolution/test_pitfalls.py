"""Pitfalls in a store: the same, whatever the order, and whoever does the same meanwhile."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
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
    similar,
    told_of,
)
from tests.toy_embeddings import ToyEmbeddings
from typing_extensions import override

from daruma.graph.storage import aopen_postgres, open_postgres
from daruma.state.lessons import Experience, Pitfall
from daruma.tools.evolution import Evidence, Pitfalls, shelf
from daruma.tools.evolution._pitfalls import (
    detect,
    evidence_of_setback,
    group_of,
    summarise,
)
from daruma.tools.evolution._records import Shelf

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


async def test_what_a_person_rejected_is_high() -> None:
    """Though the task went on and was completed."""
    objection = a_setback("person:plan:no", kind="person", ended=False)
    found = await on_record(Pitfalls(InMemoryStore(), "o"), objection, an_experience(), LEAST)

    assert found.level == "high"


async def test_what_is_meant_is_found_without_a_word_in_common(postgres_url: str) -> None:
    """EV-05a: with others' pitfalls, too; what is about something else, and sealed text, is not."""
    goal, alike, other = "Buy a fast car", "Acquire the quick automobile", "Feed the hound"
    async with aopen_postgres(postgres_url) as postgres:
        store = postgres.store.with_embeddings(ToyEmbeddings())
        for owner in ("o", "theirs"):
            experience = replace(an_experience(goal=goal), owner=owner)
            sharing = Pitfalls(store, owner, shared=True)
            await on_record(sharing, a_setback(), experience, LEAST)
        ours, all_, plain = (
            Pitfalls(store, "o"),
            Pitfalls(store, "o", shared=True),
            Pitfalls(postgres.store, "o"),
        )

        assert len(await similar(ours, alike, 1, LEAST)) == 1
        assert len(await similar(all_, alike, 1, LEAST)) == 2
        assert await similar(ours, other, 1, LEAST) == []
        assert await similar(plain, alike, 1, LEAST) == []


@pytest.mark.parametrize("shared", [False, True])
async def test_looking_up_is_one_call_of_the_store(shared: bool) -> None:
    """EV-05: one query, with others' pitfalls too."""
    store = Counting()
    await observed(store)
    store.calls = 0

    await similar(Pitfalls(store, "o", shared=shared), ROUNDING, 1, LEAST)

    assert store.calls == 1


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


@pytest.mark.sampled(1)
async def test_more_tasks_than_are_counted_change_neither_name_nor_what_can_be_forgotten(
    store: BaseStore,
) -> None:
    """The newest count, each new one is seen, and nothing is left that would bring it back."""
    pitfalls = Pitfalls(store, "o")
    facts = [evidence_of_setback(a_setback(), an_experience(number)) for number in range(1, 301)]
    place = shelf("o", "evidence", facts[0].group)
    kept = Shelf(store, Evidence, place)
    await store.abatch([kept.to_put(each.key, each) for each in facts])

    more = [await on_record(pitfalls, a_setback(), an_experience(n), LEAST) for n in (1001, 1002)]

    assert [each.id for each in more] == [(await pitfalls.all())[0].id] * 2
    assert [(each.tasks, each.first_at, each.last_at) for each in more] == [
        (300, 1.0, 1001.0),
        (300, 1.0, 1002.0),
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


# --- What a task says of pitfalls: those it met, and those it did not meet.

MET = (a_setback(),)


def done(number: int, goal: str = ROUNDING, *told: str) -> Experience:
    """A task that was completed, and told of those pitfalls."""
    lessons = told_of(*told, task=f"t{number}/1")
    return an_experience(number, goal=goal, status="completed", lessons=lessons)


async def after(*experiences: Experience) -> list[Pitfall]:
    """What is kept after tasks."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    for experience in experiences:
        await detect(experience, pitfalls, LEAST)
    return await pitfalls.all()


async def test_what_a_task_met_becomes_a_pitfall() -> None:
    """EV-03: each setback, for its actor; what is passing makes none."""
    outage = a_setback("main:llm_failure:APIError", passing=True)
    (found,) = await after(an_experience(setbacks=(*MET, outage)))

    assert (found.signature, found.tasks, found.level) == (MET[0].signature, 1, "high")


class Forgetful(InMemoryStore):
    """A store where a person forgets what is said of one group as soon as it is said."""

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        lost = shelf("o", "evidence", group_of("o", "main", "lost"))
        return await super().abatch(
            [
                each._replace(value=None)
                if isinstance(each, PutOp) and each.namespace == lost
                else each
                for each in ops
            ]
        )


async def test_what_is_forgotten_meanwhile_does_not_end_what_else_is_learned() -> None:
    """The task's other setbacks are put down all the same."""
    pitfalls = Pitfalls(Forgetful(), "o")
    met = (a_setback("lost"), a_setback("kept"))

    await detect(an_experience(setbacks=met), pitfalls, LEAST)

    assert [each.signature for each in await pitfalls.all()] == ["kept"]


SEVENTH, EIGHTH = "Fix module number 7", "Fix module number 8"
OVERCOME = (a_setback(ended=False, advice="look twice"),)
FELL = (a_setback("check:lint"),)
SAID: dict[str, tuple[str, Callable[[str], Experience], dict[str, int], str]] = {
    "went well": (ROUNDING, lambda _: done(2), {"clear": 1}, "low"),
    "was told": (ROUNDING, lambda told: done(2, ROUNDING, told), {"avoided": 1}, "high"),
    "was told of another": (ROUNDING, lambda _: done(2, ROUNDING, "another-1"), {}, "high"),
    "had another goal": (ROUNDING, lambda _: done(2, PARSER), {}, "high"),
    "failed": (ROUNDING, lambda _: replace(done(2), status="failed"), {}, "high"),
    "came before": (ROUNDING, lambda _: done(0), {}, "high"),
    "met it, too": (ROUNDING, lambda _: replace(done(2), setbacks=MET), {"tasks": 2}, "high"),
    "overcame it": (ROUNDING, lambda _: an_experience(2, setbacks=OVERCOME), {"tasks": 2}, "high"),
    "was told and met it": (
        ROUNDING,
        lambda told: an_experience(2, setbacks=MET, lessons=told_of(told)),
        {"tasks": 2, "repeated": 1},
        "high",
    ),
    "was told and broken off": (
        ROUNDING,
        lambda told: an_experience(2, status="cancelled", lessons=told_of(told)),
        {},
        "high",
    ),
    "was led astray": (
        ROUNDING,
        lambda told: an_experience(2, setbacks=FELL, lessons=told_of(told)),
        {"in_vain": 1},
        "low",
    ),
    "is of the same kind": (SEVENTH, lambda _: done(2, EIGHTH), {}, "high"),
    "is of the same kind and fell to something else": (
        SEVENTH,
        lambda told: an_experience(2, EIGHTH, setbacks=FELL, lessons=told_of(told)),
        {},
        "high",
    ),
}


@pytest.mark.parametrize("which", SAID)
async def test_what_a_later_task_says_of_a_pitfall(which: str) -> None:
    """EV-03: one alike that went well untold speaks against it; telling that helps goes on."""
    goal, later, counted, level = SAID[which]
    met = an_experience(1, goal, setbacks=MET)
    (first,) = await after(met)

    (found,) = [each for each in await after(met, later(first.id)) if each.id == first.id]

    none = {"tasks": 1, "repeated": 0, "avoided": 0, "clear": 0, "in_vain": 0}
    assert {name: getattr(found, name) for name in none} == none | counted
    assert found.level == level
    assert found.advice == ("look twice" if which == "overcame it" else first.advice)
    assert (found.confidence < first.confidence) is (which in ("went well", "was led astray"))


async def test_only_what_lies_in_a_groups_own_namespace_speaks_of_it() -> None:
    """A store may take a namespace for the beginning of others."""
    pitfalls = Pitfalls(InMemoryStore(), "o")
    await detect(an_experience(1, setbacks=MET), pitfalls, LEAST)
    place = shelf("o", "evidence", group_of("o", MET[0].actor, MET[0].signature))
    (item,) = await pitfalls.store.asearch(place)
    await pitfalls.store.aput((*place, "beneath"), "x", item.value | {"task": "x/1"})
    await detect(an_experience(2, setbacks=MET), pitfalls, LEAST)

    assert [each.tasks for each in await pitfalls.all()] == [2]


async def test_anothers_pitfall_is_never_written_to() -> None:
    """EV-04: though a task was told of it, as both share."""
    store = InMemoryStore()
    theirs = Pitfalls(store, "p", shared=True)
    made = await on_record(theirs, a_setback(), an_experience(1, owner="p"), LEAST)
    told = replace(done(2, ROUNDING, made.id), at=5)

    await detect(told, Pitfalls(store, "o", shared=True), LEAST)
    assert await store.asearch(shelf("o", "evidence")) == []
    await detect(replace(told, setbacks=MET), Pitfalls(store, "o", shared=True), LEAST)

    assert await theirs.all() == [made]
    (own,) = await Pitfalls(store, "o").all()
    assert (own.owner, own.tasks, own.repeated) == ("o", 1, 0)


FACTS_DETECTING = st.lists(
    st.tuples(
        st.sampled_from(["failed", "clear", "avoided", "repeated"]),
        st.sampled_from([ROUNDING, PARSER, "Fix how invoices are rounded in bill/split.py", ""]),
        st.integers(0, 5),
    ),
    max_size=12,
)


@pytest.mark.long
@given(FACTS_DETECTING, st.randoms())
def test_pitfalls_are_made_of_the_facts_alone(
    facts: list[tuple[str, str, int]], draw: object
) -> None:
    """In any order; each task that met something belongs to one pitfall."""
    made = [
        Evidence(
            task=f"t{n}",
            how=how,  # type: ignore[arg-type]
            at=float(at),
            owner="o",
            actor="main",
            signature="s",
            goal=goal,
            kind="check",
        )
        for n, (how, goal, at) in enumerate(facts)
    ]
    shuffled = list(made)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]

    found = summarise(made, LEAST)

    assert found == summarise(shuffled, LEAST)
    assert sum(each.pitfall.tasks for each in found) == sum(each.seen for each in made)
    assert all(0 <= each.pitfall.confidence <= 1 for each in found)
    assert len({each.pitfall.id for each in found}) == len(found)
