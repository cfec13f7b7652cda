"""Of too many facts the oldest go, but a pitfall keeps the one that names it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.tools.evolution.ended_tasks import PARSER, ROUNDING, a_setback, an_experience

from daruma.tools.evolution.evidence import Evidence, seen_in, summed_up, surplus

GOALS = (ROUNDING, PARSER, "Translate the menu into Danish")


def a_fact(number: int, goal: str = ROUNDING, *, seen: bool = True) -> Evidence:
    fact = seen_in(a_setback(), an_experience(number, goal=goal))
    return fact if seen else replace(fact, how="clear")


def gone(facts: list[Evidence], most: int) -> list[float]:
    return [each.at for each in surplus(facts, summed_up(facts, 0.5), most)]


def test_the_oldest_go_but_not_what_names_a_pitfall() -> None:
    """The first fact is as new as the newest: the id stays the same."""
    facts = [a_fact(number) for number in (3, 1, 4, 2)]

    assert gone(facts, 4) == []
    assert gone(facts, 3) == [2.0]
    assert gone(facts, 1) == [2.0, 3.0, 4.0]


def test_a_pitfall_that_nobody_met_for_longest_goes_whole() -> None:
    """So a goal that comes now can still gather what speaks for it."""
    facts = [a_fact(1), a_fact(2, PARSER), a_fact(3, GOALS[2]), a_fact(4)]

    assert gone(facts, 3) == [2.0]


def test_what_belongs_to_no_pitfall_goes_by_its_age() -> None:
    """Such as what is left of one that was forgotten."""
    assert gone([a_fact(1, PARSER, seen=False), a_fact(2)], 1) == [1.0]


@given(
    st.lists(st.tuples(st.sampled_from(GOALS), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 12),
)
def test_what_stays_is_so_many_and_keeps_its_names(
    drawn: list[tuple[str, bool]], most: int
) -> None:
    """No pitfall gets another id, or comes into being, by what goes."""
    facts = [a_fact(number, goal, seen=seen) for number, (goal, seen) in enumerate(drawn)]

    let_go = surplus(facts, summed_up(facts, 0.5), most)
    rest = [each for each in facts if each not in let_go]

    assert len(rest) == min(most, len(facts))
    before = {each.pitfall.id for each in summed_up(facts, 0.5)}
    assert {each.pitfall.id for each in summed_up(rest, 0.5)} <= before
