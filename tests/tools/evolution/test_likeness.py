"""How alike goals are: by the words that tell something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.text.search import SAME_KIND, likeness, likeness_to_any, needed

FIX = "Fix the rounding of invoices in bill/split.py"


@pytest.mark.parametrize(
    "other",
    [
        FIX,
        "fix rounding of the invoices in bill/split.py!",
        "Please fix how invoices are rounded (bill/split.py)",
    ],
)
def test_the_same_in_other_words_is_alike(other: str) -> None:
    """Enough to be told of a pitfall that one task alone has met."""
    assert likeness(FIX, other) >= needed(1)


@pytest.mark.parametrize("other", ["Document the config parser", "Fix the login", "", "!?"])
def test_another_thing_is_another_kind(other: str) -> None:
    """One verb in common is no kinship."""
    assert likeness(FIX, other) < SAME_KIND


def test_numbers_tell_tasks_of_one_kind_apart() -> None:
    """However short they are."""
    assert SAME_KIND <= likeness("Fix module number 7", "Fix module number 8") < 1


def test_more_tasks_need_less_likeness() -> None:
    """One failure is enough where the goal comes again nearly the same."""
    assert needed(1) > needed(2) > needed(3) == needed(100)


def test_the_most_alike_of_several_counts() -> None:
    """A pitfall has been met under several goals."""
    assert likeness_to_any(FIX, ["Document the parser", FIX]) == 1
    assert likeness_to_any(FIX, []) == 0


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    """From 0 to 1, the same both ways, and a text is like itself."""
    assert 0 <= likeness(one, other) == likeness(other, one) <= 1
    assert likeness(one, one) == 1
