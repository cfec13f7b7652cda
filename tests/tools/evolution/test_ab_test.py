"""A comparison finds what is there, seldom what is not, and never promotes what makes it worse."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.evolution.variants import LOOKS, Arm, Outcome, arm_of, decision, setback_in_use


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


def test_what_comes_after_a_look_does_not_change_it() -> None:
    """Who decides late decides as who was there at once."""
    at_the_look = [*outcomes("variant", 20, 0), *outcomes("control", 5, 15)]
    later = [
        replace(o, task_id=f"{o.task_id} later", at=o.at + 99) for o in outcomes("variant", 1, 14)
    ]

    assert decision([*at_the_look, *later]) == decision(at_the_look)


def test_two_thousand_comparisons_of_equals_promote_five_in_a_hundred_at_most() -> None:
    """EV-03: four looks, and what does nothing is hardly ever taken for better."""
    found = Counter(simulated(seed, 0.5, 0.5) for seed in range(2000))

    assert found["better"] <= 0.05 * 2000
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


def test_a_review_looks_at_what_ended_until_then() -> None:
    """A look that is over stays as it was, whatever came later."""
    control = outcomes("control", 9, 0, seconds=9)
    good = outcomes("promoted", 45, 0)
    bad = dealt("promoted", [False] * 810, 0.1)[450:]

    assert setback_in_use([*good, *bad, *control]) is None


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
