"""Each task's outcome counts once, and what they come to is decided alike by everybody."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from tests.interleaved_store import InterleavedStore
from tests.variant_parts import a_variant, an_ended, given_to

from daruma.state.lessons import Experience, Setback
from daruma.tools.evolution.optimiser import count_outcomes, decide
from daruma.tools.evolution.shelf import shelf
from daruma.tools.evolution.variants import LOOKS, Variant, Variants


def ended(arm: str, number: int, *, ok: bool = True, **changes: Any) -> Experience:
    """A task that was in an arm."""
    task = f"{arm}/{number}"
    given_: dict[str, Any] = {"lessons": given_to(task, arm), "at": float(number)} | changes
    return an_ended(task, "completed" if ok else "failed", **given_)


def a_win(size: int = 20) -> list[Experience]:
    """Outcomes that speak for the variant at the first look."""
    tasks = [ended("variant", n) for n in range(size)]
    return tasks + [ended("control", n, ok=False) for n in range(size)]


async def counted(
    tasks: list[Experience], variant: Variant | None = None, store: BaseStore | None = None
) -> Variant:
    used = store or InMemoryStore()
    await Variants(used, "o").put(variant or a_variant())
    for each in tasks:
        await count_outcomes(each, used)
    return await now(used)


async def now(store: BaseStore) -> Variant:
    found = await Variants(store, "o").get("v")
    assert found is not None
    return found


async def test_what_is_better_comes_into_use() -> None:
    """EV-03: and says by which numbers, as of the last of them."""
    found = await counted(a_win())

    assert (found.status, found.decided_at) == ("promoted", 19.0)
    assert "20 of 20 succeeded with it, 0 of 20 without" in found.why


async def test_what_is_worse_is_rejected() -> None:
    """At the first look that shows it."""
    tasks = [ended("variant", n, ok=False) for n in range(20)]
    found = await counted(tasks + [ended("control", n) for n in range(20)])

    assert found.status == "rejected"


async def test_what_makes_no_difference_is_rejected_at_the_last_look() -> None:
    """A prompt holds nothing that is not worth it."""
    last = LOOKS[-1]
    tasks = [ended(arm, n) for n in range(last) for arm in ("variant", "control")]
    found = await counted(tasks)

    assert (found.status, found.why[:13]) == ("rejected", "no difference")
    assert (await counted(tasks[:-1])).status == "testing"


async def test_who_is_late_does_not_set_back_what_others_decided() -> None:
    """Nor brings back what was removed meanwhile."""
    store = InMemoryStore()
    await counted(a_win(), store=store)
    further = a_variant(status="promoted", review=3)
    await Variants(store, "o").put(further)
    await decide(a_variant(), store)
    kept = await now(store)
    await store.adelete(shelf("o", "variants"), "v")
    await decide(a_variant(), store)

    assert kept == further
    assert await Variants(store, "o").get("v") is None


async def test_before_a_look_nothing_is_decided() -> None:
    """Looking after each task would find what is not there."""
    assert (await counted(a_win()[:-1])).status == "testing"


async def test_a_task_counts_once_however_often_it_is_learned_from() -> None:
    """A job may be done twice."""
    assert (await counted(a_win(19) + a_win(19))).status == "testing"


async def test_a_task_of_the_test_does_not_count_again_in_use() -> None:
    """What it was decided by is not what it is reviewed by."""
    store = InMemoryStore()
    await counted(a_win(), store=store)
    for each in a_win():
        await count_outcomes(each, store)
    place = shelf("o", "outcomes", "v", "1")

    assert [i for i in await store.asearch(place, limit=100) if i.namespace == place] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "cancelled"},
        {"status": "blocked"},
        {
            "status": "failed",
            "setbacks": (
                Setback(
                    kind="failure", actor="main", signature="s", text="", ended=True, passing=True
                ),
            ),
        },
    ],
    ids=["broken off", "waits", "outage"],
)
async def test_what_says_nothing_of_the_work_counts_for_neither_side(changes: Any) -> None:
    """A provider's outage is no argument against an instruction."""
    spoilt = [
        an_ended(f"variant/{n}", lessons=given_to(f"variant/{n}", "variant"), **changes)
        for n in range(20, 60)
    ]

    assert (await counted(spoilt + a_win())).status == "promoted"


async def test_a_task_that_was_given_nothing_counts_for_nothing() -> None:
    """Nor does one that was given what is no more."""
    store = InMemoryStore()
    await count_outcomes(an_ended("t/1"), store)
    await count_outcomes(ended("variant", 1), store)

    assert await store.asearch(()) == []


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_two_who_decide_at_once_end_alike(seed: int) -> None:
    """And as one who does it all in turn: it depends on the outcomes alone."""

    async def both() -> tuple[Variant, Variant]:
        tasks, store = a_win(), InterleavedStore(seed)
        random.Random(seed).shuffle(tasks)  # noqa: S311 - an order
        await Variants(store, "o").put(a_variant())
        await asyncio.gather(
            *(count_outcomes(each, store) for each in tasks),
            *(count_outcomes(each, store) for each in tasks[::2]),
        )
        return await now(store), await counted(a_win())

    at_once, in_turn = asyncio.run(both())

    assert at_once == in_turn


async def test_what_is_in_use_is_taken_back_where_it_has_become_worse() -> None:
    """EV-03: the way back, by newer outcomes than those of its test."""
    store = InMemoryStore()
    await counted(a_win(), store=store)
    for number in range(100, 145):
        await count_outcomes(ended("promoted", number, ok=False), store)
    before = await now(store)
    for number in range(5):
        task = ended("control", 200 + number)
        await count_outcomes(task, store)
    after = await now(store)

    assert before.status == "promoted"
    assert (after.status, after.review) == ("withdrawn", 2)
    assert "worse: 0 of 45" in after.why


async def test_a_review_that_ends_well_is_followed_by_another() -> None:
    """It stays under watch as long as it is in use."""
    used = a_variant(status="promoted", review=1)
    well = [ended("promoted", n) for n in range(40)] + [ended("control", n) for n in range(40)]
    store = InMemoryStore()
    found = await counted(well, used, store)
    bad = [ended("promoted", n, ok=False) for n in range(50, 90)]
    for each in [*bad, *(ended("control", n) for n in range(90, 95))]:
        await count_outcomes(each, store)

    assert (found.status, found.review) == ("promoted", 2)
    assert (await now(store)).status == "withdrawn"


async def test_outcomes_of_comparisons_that_are_long_over_are_let_go() -> None:
    """A variant in use is reviewed for years: only the last two comparisons are kept."""
    store = InMemoryStore()
    await counted([], a_variant(status="promoted", review=1), store)
    for since in (0, 100, 200):
        for n in range(since, since + 40):
            await count_outcomes(ended("promoted", n), store)
            await count_outcomes(ended("control", n), store)
    items = await store.asearch(shelf("o", "outcomes"), limit=1000)

    assert (await now(store)).review == 4
    assert {item.namespace[-1] for item in items} == {"3"}


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_what_a_person_withdrew_no_decision_brings_back(seed: int) -> None:
    """Not even one that was made at that moment."""

    async def meanwhile() -> Variant:
        store = InterleavedStore(seed)
        await Variants(store, "o").put(a_variant())
        for each in a_win()[:-1]:
            await count_outcomes(each, store)
        await asyncio.gather(
            count_outcomes(a_win()[-1], store), Variants(store, "o").withdraw("v", 99.0)
        )
        return await now(store)

    assert asyncio.run(meanwhile()).status == "withdrawn"
