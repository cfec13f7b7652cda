"""The facts that pitfalls are summed up from, and how sure they are. Pure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.evolution.ended_tasks import PARSER, ROUNDING, a_setback, an_experience

from daruma.tools.evolution import Evidence
from daruma.tools.evolution._pitfalls import (
    choose_excess,
    confidence,
    evidence_of_setback,
    level_of,
    most_alike,
    stored_pitfall,
    summarise,
)

# --- How sure a pitfall is: what the formula promises, for all numbers.

COUNTS = st.integers(0, 10_000)
SHARES = st.floats(0, 1)
AGES = st.floats(0, 1e9)


@pytest.mark.parametrize(
    ("hits", "clear", "sure"),
    [(1, 0, 0.6), (3, 0, 0.78), (1, 1, 0.43), (0, 3, 0.11), (0, 0, 1 / 3)],
)
def test_few_tasks_make_it_as_sure_as_is_said(hits: int, clear: int, sure: float) -> None:
    """One task 0.6, three 0.78: each task on either side counts."""
    assert confidence(hits, clear) == pytest.approx(sure, abs=0.005)


def test_a_quarter_of_a_year_halves_it() -> None:
    """What was not seen for long is less sure."""
    assert confidence(1, 0, age=90 * 86_400) == pytest.approx(0.3)


@given(COUNTS, COUNTS, SHARES, AGES)
def test_it_is_a_share(hits: int, clear: int, alike: float, age: float) -> None:
    """From 0 to 1, whatever is on record."""
    assert 0 <= confidence(hits, clear, alike, age) <= 1


@given(COUNTS, COUNTS, SHARES, AGES, st.integers(1, 100))
def test_hits_add_and_what_went_well_takes_away(
    hits: int, clear: int, alike: float, age: float, more: int
) -> None:
    """Monotone in what speaks for it, and in what speaks against it."""
    sure = confidence(hits, clear, alike, age)

    assert confidence(hits + more, clear, alike, age) >= sure
    assert confidence(hits, clear + more, alike, age) <= sure


@given(COUNTS, COUNTS, st.tuples(SHARES, SHARES), st.tuples(AGES, AGES))
def test_less_alike_and_older_is_less_sure(
    hits: int, clear: int, alike: tuple[float, float], age: tuple[float, float]
) -> None:
    """Monotone in how alike the goals are, and in time."""
    least = confidence(hits, clear, min(alike), max(age))

    assert least <= confidence(hits, clear, max(alike), max(age))
    assert least <= confidence(hits, clear, min(alike), min(age))


@pytest.mark.parametrize(
    ("sure", "grave", "level"),
    [(0.49, True, "low"), (0.5, False, "medium"), (0.5, True, "high"), (0.49, False, "low")],
)
def test_a_level_says_whether_it_may_be_told(sure: float, grave: bool, level: str) -> None:
    """EV-03: below the least confidence it is marked, whatever it did."""
    assert level_of(sure, 0.5, grave=grave) == level


# --- Of too many facts the oldest go, but a pitfall keeps the one that names it.

GOALS = (ROUNDING, PARSER, "Translate the menu into Danish")


def a_fact(number: int, goal: str = ROUNDING, *, seen: bool = True) -> Evidence:
    fact = evidence_of_setback(a_setback(), an_experience(number, goal=goal))
    return fact if seen else replace(fact, how="clear")


def gone(facts: list[Evidence], most: int) -> list[float]:
    return [each.at for each in choose_excess(facts, summarise(facts, 0.5), most)]


def test_the_oldest_go_but_not_what_names_a_pitfall() -> None:
    """The first fact is as new as the newest: the id stays the same."""
    facts = [a_fact(number) for number in (3, 1, 4, 2)]

    assert gone(facts, 4) == []
    assert gone(facts, 3) == [2.0]
    assert gone(facts, 1) == [2.0, 3.0, 4.0]


def test_what_a_pitfall_is_found_by_is_bounded() -> None:
    """Its five newest goals, shortened, and ten skills."""
    facts = [
        evidence_of_setback(
            a_setback(), an_experience(n, f"{ROUNDING} {n} {'of ' * 300}", skills=(f"s{n:02}",))
        )
        for n in range(1, 13)
    ]

    (found,) = summarise(facts, 0.5)

    assert [goal.split()[7] for goal in found.pitfall.goals] == ["12", "11", "10", "9", "8"]
    assert {len(goal) for goal in found.pitfall.goals} == {500}
    assert found.pitfall.skills == tuple(f"s{n:02}" for n in range(1, 11))
    assert len(stored_pitfall(found, shared=False).about) == 2000


@pytest.mark.parametrize(
    ("words", "skill", "tasks", "told"),
    [
        (6, False, 1, True), (5, False, 1, False), (5, True, 1, True), (4, True, 1, False),
        (5, False, 2, True), (4, False, 2, False),
        (4, False, 3, True), (3, False, 3, False), (3, True, 9, True),
    ],
)  # fmt: skip
def test_how_alike_goals_have_to_be_the_number_of_tasks_says(
    words: int, skill: bool, tasks: int, told: bool
) -> None:
    """EV-05: six words in ten, five where two tasks met it, four where more; a skill is one."""
    goal = [f"w{n}" for n in range(10)]
    other = " ".join([*goal[:words], *(f"v{n}" for n in range(10 - words))])
    (found,) = summarise([a_fact(1, other)], 0.5)
    pitfall = replace(found.pitfall, tasks=tasks, skills=("pdf",))

    chosen = most_alike(" ".join(goal), [pitfall], skills=("pdf",) if skill else ())

    assert chosen == ([pitfall] if told else [])


@pytest.mark.parametrize(("words", "pitfalls"), [(5, 1), (4, 2)])
def test_goals_of_one_kind_share_half_of_their_words(words: int, pitfalls: int) -> None:
    """Just as many, and one less."""
    goal = [f"w{n}" for n in range(10)]
    other = [*goal[:words], *(f"v{n}" for n in range(10 - words))]

    assert len(summarise([a_fact(1, " ".join(goal)), a_fact(2, " ".join(other))], 0.5)) == pitfalls


@pytest.mark.long
@given(
    st.lists(st.tuples(st.sampled_from(GOALS), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 12),
)
def test_what_stays_is_so_many_and_keeps_its_names(
    drawn: list[tuple[str, bool]], most: int
) -> None:
    """No pitfall gets another id, or comes into being, by what goes."""
    facts = [a_fact(number, goal, seen=seen) for number, (goal, seen) in enumerate(drawn)]

    let_go = choose_excess(facts, summarise(facts, 0.5), most)
    rest = [each for each in facts if each not in let_go]

    assert len(rest) == min(most, len(facts))
    before = {each.pitfall.id for each in summarise(facts, 0.5)}
    assert {each.pitfall.id for each in summarise(rest, 0.5)} <= before
