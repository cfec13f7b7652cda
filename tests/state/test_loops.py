"""Loops: found in the step record, soon, and never where something is new."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import taken
from tests.state.test_rounds import think

from daruma.state.progress import Loop, Round, repeating, threshold_of
from daruma.state.steps import Step


def record(*done: str) -> tuple[list[Step], str]:
    """The steps that asked for ``A1``: calls A with outcome 1; and what the last came to."""
    saw = ""
    steps = []
    for each in done:
        steps.append(think(f"{each[0]}#", saw))
        saw = each[1:]
    return steps, saw


def loop(done: str, asked: str, threshold: int = 2) -> Loop | None:
    steps, saw = record(*done.split())
    return repeating(steps, think(f"{asked}#", saw), threshold=threshold)


@pytest.mark.parametrize(
    ("done", "asked", "cycle", "times"),
    [
        ("A1 A1", "A", "A", 2),
        ("A1 A1 A1", "A", "A", 3),
        ("A1 B2 A1 B2", "A", "AB", 2),
        ("X1 B2 A1 B2 A1", "B", "BA", 2),
        ("A1 B2 C3 A1 B2 C3", "A", "ABC", 2),
        ("A1 B2 C3 D4 A1 B2 C3 D4", "A", "ABCD", 2),
        ("A1 A1 A1 A1", "A", "A", 4),
        ("A1 A1 B2 A1 A1 B2", "A", "AAB", 2),
        ("A!1 A!1", "A", "A", 2),
    ],
)
def test_a_cycle_is_found_with_its_length(done: str, asked: str, cycle: str, times: int) -> None:
    """RE-02: the shortest one, and how often it was gone through."""
    found = loop(done, asked)

    assert found is not None
    assert ("".join(each.calls[0] for each in found.cycle), found.times) == (cycle, times)


@pytest.mark.parametrize(
    ("done", "asked"),
    [
        ("", "A"),
        ("A1", "A"),
        ("A1 A2", "A"),
        ("A1 A1 A2", "A"),
        ("A1 B1", "A"),
        ("A1 A1", "B"),
        ("A1 B2 A1 B2", "B"),
        ("A1 B2 A1 B3", "A"),
        ("A1 B2 A1 C2", "A"),
        ("A1 A1 B2", "A"),
        ("A A", "A"),
        ("A1 B2 C3 D4 E5 A1 B2 C3 D4 E5", "A"),
    ],
)
def test_what_is_no_cycle_is_not_found(done: str, asked: str) -> None:
    """Other results, other calls, results that are not known, and cycles that are too long."""
    assert loop(done, asked) is None


def test_an_answer_without_calls_is_part_of_no_cycle() -> None:
    """What comes after it is a verification, and the work goes on."""
    steps = [think("A#"), think("", "1"), think("A#"), think("", "1")]

    assert repeating(steps, think("A#"), threshold=2) is None


def test_modes_that_keep_working_are_more_patient() -> None:
    """RE-02: threshold 2, in those 3."""
    assert [threshold_of(mode) for mode in ("direct_chat", "react")] == [2, 2]
    assert [threshold_of(mode) for mode in ("plan_exec", "team_collab")] == [3, 3]
    assert loop("A1 A1", "A", threshold=3) is None
    assert loop("A1 A1 A1", "A", threshold=3) is not None


def test_after_a_refusal_any_call_of_the_cycle_goes_on_with_it() -> None:
    """And once something else was run, a loop has to be a new one."""
    steps, saw = record("A1", "B2", "A1", "B2")
    stopped = [*steps, think("A#", saw, ok=False), *taken("recover")]
    other = [*stopped, think("C#", "!no")]

    assert repeating(stopped, think("A#", "!no"), threshold=2) is not None
    assert repeating(stopped, think("B#", "!no"), threshold=2) is not None
    assert repeating(stopped, think("C#", "!no"), threshold=2) is None
    assert repeating(other, think("A#", "3"), threshold=2) is None


def test_a_reflection_resets_the_detector() -> None:
    """RE-02: the second attempt may do once more what the first did."""
    steps, saw = record("A1", "A1")

    assert repeating([*steps, *taken("reflect")], think("A#", saw), threshold=2) is None


def test_a_loop_is_told_in_words() -> None:
    """The names come from the record itself: the history may have been compacted."""
    cycle = (Round("search#1", "x"), Round("view + run#2", "y"))

    assert str(Loop(cycle, 3)) == "search, then view + run, 3 times with the same results"


NAMES = st.sampled_from("ABCD")
PAIRS = st.lists(st.tuples(NAMES, st.integers(0, 99).map(str)), max_size=12, unique=True)


@given(PAIRS, NAMES, st.integers(2, 3))
def test_different_rounds_are_never_a_loop(
    pairs: list[tuple[str, str]], asked: str, threshold: int
) -> None:
    """Whatever is asked for next."""
    steps, saw = record(*(calls + outcome for calls, outcome in pairs))

    assert repeating(steps, think(f"{asked}#", saw), threshold=threshold) is None


@given(PAIRS, st.lists(st.sampled_from("EFGH"), min_size=1, max_size=4), st.integers(2, 3))
def test_a_pure_cycle_is_found_once_it_is_full(
    before: list[tuple[str, str]], cycle: list[str], threshold: int
) -> None:
    """After as many rounds as the threshold says, whatever was done before."""
    done = [calls + outcome for calls, outcome in before]
    done += [f"{calls}0" for calls in cycle * threshold]
    steps, saw = record(*done)

    assert repeating(steps, think(f"{cycle[0]}#", saw), threshold=threshold) is not None


@given(st.data())
def test_noise_in_other_kinds_of_steps_changes_nothing(data: Any) -> None:
    """Repairs, verifications and failed model calls may lie anywhere between."""
    steps, saw = record("A1", "B2", "A1", "B2")
    between = [*taken("repair", "verify", "plan"), think("", ok=False)]
    mixed: list[Step] = []
    after = [*(step.saw for step in steps[1:]), saw]
    for step, seen in zip(steps, after, strict=True):
        others = data.draw(st.lists(st.sampled_from(between), max_size=3))
        shown = (think("", seen, ok=False) if o.kind == "think" else o for o in others)
        mixed += [step, *islice(shown, 3)]

    found = repeating(mixed, think("A#", saw), threshold=2)

    assert found == repeating(steps, think("A#", saw), threshold=2)
    assert found is not None
