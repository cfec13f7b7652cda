"""A task is given what is in use and what is in a test, of its actors, of its owner."""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Item
from langgraph.store.memory import InMemoryStore
from tests.variant_parts import a_variant

from daruma.state.lessons import Instruction
from daruma.tools.evolution import Variant, Variants, shelf
from daruma.tools.evolution._variants import (
    LOOKS,
    MOST_IN_USE,
    Arm,
    Outcome,
    arm_of,
    chance_of_better,
    decision,
    instructions_of,
    setback_in_use,
    variant_ops,
)


async def kept(*variants: Variant) -> InMemoryStore:
    store = InMemoryStore()
    for each in variants:
        await Variants(store, each.owner).put(each)
    return store


async def items(store: BaseStore, owner: str = "o") -> list[Item]:
    found: list[Any] = await store.abatch(variant_ops(owner))
    return [item for each in found for item in each]


async def given_variants(
    store: BaseStore, *, task: str = "t/1", owner: str = "o", **options: Any
) -> tuple[Instruction, ...]:
    asked = {"actors": ("main", "plan")} | options
    return instructions_of(await items(store, owner), owner=owner, task_id=task, **asked)


def task_in(arm: str, variant: str = "v", *, promoted: bool = False) -> str:
    """The first task that is in an arm."""
    return next(
        f"t/{n}" for n in range(1000) if arm_of(variant, f"t/{n}", promoted=promoted) == arm
    )


IN_USE = a_variant(status="promoted")
USED = [a_variant(f"u{n}", "promoted", proposed_at=float(n)) for n in range(MOST_IN_USE + 2)]
TESTED = [a_variant(f"t{n}", proposed_at=float(n)) for n in range(3)]
ACTORS = [a_variant("m"), a_variant("p", actor="plan"), a_variant("e", actor="tester")]
GIVEN: dict[str, tuple[list[Variant], dict[str, Any], dict[str, str]]] = {
    "in a test": ([a_variant()], {"task": task_in("variant")}, {"v": "system"}),
    "not in it": ([a_variant()], {"task": task_in("control")}, {"v": "system"}),
    "in use": ([IN_USE], {"task": task_in("promoted", promoted=True)}, {"v": "system"}),
    "kept without": ([IN_USE], {"task": task_in("control", promoted=True)}, {"v": "system"}),
    "waits": ([a_variant(status="proposed")], {}, {}),
    "rejected": ([a_variant(status="rejected")], {}, {}),
    "withdrawn": ([a_variant(status="withdrawn")], {}, {}),
    "looked on": (
        [a_variant(status="proposed"), a_variant("gone", "rejected")],
        {"observing": True},
        {"v": "system"},
    ),
    "many": ([*TESTED, *USED], {}, dict.fromkeys(["u0", "u1", "u2", "t0"], "system")),
    "one actor": (ACTORS, {"actors": ("main",)}, {"m": "system"}),
    "three actors": (
        ACTORS,
        {"actors": ("main", "plan", "tester")},
        {"m": "system", "p": "plan", "e": "system"},
    ),
}
"""What is kept, who asks, and the place of what is given."""


@pytest.mark.parametrize("name", GIVEN)
async def test_what_is_in_a_test_or_in_use_is_given_to_a_part_of_the_tasks(name: str) -> None:
    """EV-03: half, or all but a tenth; the others are told apart by an empty text, and count too.

    An actor is in one test and has a few in use, the oldest; what no prompt shows, waits or is gone
    is given to nobody.
    """
    variants, asked, places = GIVEN[name]
    found = await given_variants(await kept(*variants), **asked)

    status = {each.id: each.status for each in variants}
    assert {each.variant: each.place for each in found} == places
    assert [each.variant for each in found] == list(places)
    for each in found:
        task = asked.get("task", "t/1")
        arm = arm_of(each.variant, task, promoted=status[each.variant] == "promoted")
        assert (each.arm, each.text) == (arm, "" if arm == "control" else "Read it first.")


async def test_another_owners_are_not_seen() -> None:
    """EV-04: not even by their id, nor where one name begins with the other."""
    store = await kept(a_variant(owner="o2"))

    assert await given_variants(store) == ()
    assert await Variants(store, "o").get("v") is None
    assert await Variants(store, "o").all() == []
    assert await Variants(store, "o").withdraw("v", 2.0) is False
    assert (await Variants(store, "o2").all())[0].status == "testing"


async def test_what_is_foreign_or_damaged_is_passed_over() -> None:
    """What says that it is another's, or fits no variant."""
    store = await kept(a_variant())
    await store.aput(shelf("o", "variants"), "bad", {"status": "testing", "text": 1})
    (item,) = [i for i in await items(store) if i.key == "v"]
    await store.aput(shelf("o", "variants"), "a", item.value | {"owner": "p", "id": "a"})

    assert [each.variant for each in await given_variants(store)] == ["v"]


async def test_what_a_person_withdraws_is_gone_from_every_prompt() -> None:
    """And stays on record."""
    store = await kept(a_variant(status="promoted"))
    done = await Variants(store, "o").withdraw("v", 7.0, "no use")
    found = await Variants(store, "o").get("v")

    assert done
    assert found is not None
    assert (found.status, found.why, found.decided_at) == ("withdrawn", "no use", 7.0)
    assert await given_variants(store) == ()


# --- The exact test is exact: it says what counting every way of dealing out successes says.


def by_counting(wins: int, of: int, other_wins: int, other_of: int) -> float:
    """Deal the successes out in every way there is, and count those that give the first so many."""
    ways = list(combinations(range(of + other_of), wins + other_wins))
    return sum(sum(place < of for place in way) >= wins for way in ways) / len(ways)


@st.composite
def tables(draw: st.DrawFn, most: int = 6) -> tuple[int, int, int, int]:
    of, other_of = draw(st.integers(0, most)), draw(st.integers(0, most))
    return draw(st.integers(0, of)), of, draw(st.integers(0, other_of)), other_of


@given(tables())
def test_it_equals_what_counting_every_way_gives(table: tuple[int, int, int, int]) -> None:
    """For all small tables."""
    assert isclose(chance_of_better(*table), by_counting(*table))


@given(tables(160))
def test_it_is_a_chance_and_falls_with_each_success(table: tuple[int, int, int, int]) -> None:
    """More successes of the first, with as many of the other, speak more for the first."""
    wins, of, other_wins, other_of = table
    chance = chance_of_better(*table)

    assert 0 < chance <= 1
    assert wins == of or chance_of_better(wins + 1, of, other_wins, other_of) <= chance


def test_it_says_what_the_books_say() -> None:
    """Fisher's lady tasting tea: all eight cups right is 1 in 70, six 17 in 70."""
    assert isclose(chance_of_better(4, 4, 0, 4), 1 / 70)
    assert isclose(chance_of_better(3, 4, 1, 4), 17 / 70)


@pytest.mark.parametrize("table", [(2, 1, 0, 1), (-1, 1, 0, 1), (0, 0, 3, 2)])
def test_counts_that_can_not_be_are_refused(table: tuple[int, int, int, int]) -> None:
    """There are no more successes than tries."""
    with pytest.raises(ValueError, match="not counts"):
        chance_of_better(*table)


# --- A comparison finds what is there, seldom what is not, and never promotes what makes it
# worse.


def outcomes(arm: Arm, wins: int, losses: int, *, seconds: float = 1.0) -> list[Outcome]:
    """So many successes, spread evenly among the failures, one outcome each so many seconds."""
    of = wins + losses
    oks = [(n + 1) * wins // of > n * wins // of for n in range(of)]
    return dealt(arm, oks, seconds)


def dealt(arm: Arm, oks: Iterable[bool], seconds: float = 1.0) -> list[Outcome]:
    return [
        Outcome(task_id=f"{arm} {n}", variant="v", arm=arm, ok=ok, at=(n + 1) * seconds)
        for n, ok in enumerate(oks)
    ]


def simulated(seed: int, rate: float, control_rate: float, most: int = LOOKS[-1]) -> str:
    """Run a test with tasks that succeed by chance; return what it comes to."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    given_ = dealt("variant", [chance.random() < rate for _ in range(most)])
    control = dealt("control", [chance.random() < control_rate for _ in range(most)])
    ended = decision([*given_, *control])
    return ended.verdict if ended else "goes on"


@pytest.mark.parametrize(
    ("variant", "control", "verdict"),
    [
        ((19, 0), (0, 19), None),
        ((20, 0), (0, 19), None),
        ((20, 0), (0, 20), "better"),
        ((0, 20), (20, 0), "worse"),
        ((20, 0), (20, 0), None),
        ((14, 6), (10, 10), None),
        ((10, 10), (3, 17), None),  # by chance once in 49: one look of four takes once in 80
        ((11, 9), (3, 17), "better"),
        ((36, 4), (20, 20), "better"),
        ((40, 40), (40, 40), None),
        ((80, 80), (80, 80), "no difference"),
    ],
)
def test_it_is_decided_at_fixed_sizes_only(
    variant: tuple[int, int], control: tuple[int, int], verdict: str | None
) -> None:
    """EV-03: by 20, 40, 80 and 160 outcomes of each arm."""
    found = decision([*outcomes("variant", *variant), *outcomes("control", *control)])

    assert (found.verdict if found else None) == verdict


@pytest.mark.long
def test_a_thousand_comparisons_of_equals_promote_five_in_a_hundred_at_most() -> None:
    """EV-03: four looks, and what does nothing is hardly ever taken for better."""
    found = Counter(simulated(seed, 0.5, 0.5) for seed in range(1000))

    assert found["better"] <= 0.05 * 1000
    assert found["goes on"] == 0


def test_a_real_improvement_is_found_by_eighty_of_each_arm() -> None:
    """EV-03: from one half to nine tenths."""
    found = Counter(simulated(seed, 0.9, 0.5, most=80) for seed in range(100))

    assert found["better"] >= 90


def test_what_makes_it_worse_is_never_promoted() -> None:
    """EV-03: and most of it is found out before the last look."""
    found = Counter(simulated(seed, 0.4, 0.7) for seed in range(100))

    assert found["better"] == 0
    assert found["worse"] >= 90


@given(st.integers(0, 50), st.randoms(use_true_random=False))
def test_the_order_in_which_outcomes_come_in_makes_no_difference(
    wins: int, chance: random.Random
) -> None:
    """They are compared by when the tasks ended."""
    found = [*outcomes("variant", wins, 50 - wins), *outcomes("control", 25, 25)]
    shuffled = list(found)
    chance.shuffle(shuffled)

    assert decision(shuffled) == decision(found)


def test_a_task_is_in_the_same_arm_always() -> None:
    """By invoke, by stream, and after a crash: it depends on the two names alone."""
    arms = Counter(arm_of("v", f"t/{n}", promoted=False) for n in range(2000))
    used = Counter(arm_of("v", f"t/{n}", promoted=True) for n in range(2000))

    assert arm_of("v", "t/1", promoted=False) == arm_of("v", "t/1", promoted=False)
    assert 900 < arms["variant"] < 1100
    assert arms["promoted"] == 0
    assert 140 < used["control"] < 260
    assert used["variant"] == 0


@pytest.mark.parametrize(
    ("used", "control", "verdict"),
    [
        ((0, 45), (4, 0), None),
        ((0, 45), (5, 0), "worse"),
        ((45, 0), (0, 5), None),
        ((360, 0), (40, 0), "no difference"),
        ((180, 180), (20, 20), "no difference"),
    ],
)
def test_what_is_in_use_is_taken_back_when_it_has_become_worse(
    used: tuple[int, int], control: tuple[int, int], verdict: str | None
) -> None:
    """The way back: it is compared with the tenth that goes without."""
    seconds = sum(used) / sum(control)
    without = outcomes("control", *control, seconds=seconds)
    found = setback_in_use([*outcomes("promoted", *used), *without])

    assert (found.verdict if found else None) == verdict


def test_what_goes_on_well_is_seldom_taken_back() -> None:
    """Where it makes no difference any more, a review of four looks ends well."""
    taken_back = 0
    for seed in range(200):
        chance = random.Random(seed)  # noqa: S311 - a simulation
        used = dealt("promoted", [chance.random() < 0.8 for _ in range(360)])
        control = dealt("control", [chance.random() < 0.8 for _ in range(40)], 9.0)
        ended = setback_in_use([*used, *control])
        taken_back += bool(ended and ended.verdict == "worse")

    assert taken_back <= 0.05 * 200
