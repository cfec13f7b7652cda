"""A set that grows in two parts is a set like any other."""

from hypothesis import given
from hypothesis import strategies as st

from daruma.state.messages import NOTHING, Gathered, gathered, holds_any


@given(st.lists(st.lists(st.integers(0, 50), max_size=9)), st.lists(st.integers(0, 60)))
def test_it_holds_what_was_added_and_nothing_else(added: list[list[int]], asked: list[int]) -> None:
    """In whatever parts it came."""
    known: Gathered[int] = NOTHING
    for values in added:
        known = gathered(known, values)

    assert holds_any(known, asked) == any(each in values for values in added for each in asked)


def test_what_is_known_stays_as_it_is() -> None:
    """Lists that grew from the same one share it."""
    known = gathered(gathered(NOTHING, [1, 2, 3]), [4])

    one, other = gathered(known, [5]), gathered(known, [6])

    assert (holds_any(one, [5]), holds_any(one, [6])) == (True, False)
    assert (holds_any(other, [5]), holds_any(other, [6])) == (False, True)
    assert not holds_any(known, [5, 6])


def test_adding_copies_little_of_what_there_is() -> None:
    """All of it for one in so many values as its square root."""
    known: Gathered[int] = NOTHING
    copied = 0
    for n in range(4096):
        most, _ = known
        known = gathered(known, [n])
        copied += len(known[1]) + (len(known[0]) if known[0] is not most else 0)

    assert copied < 4096 * 150
