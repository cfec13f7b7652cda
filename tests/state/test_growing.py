"""What a list knows of itself is what a look at all of it finds; each value is seen once."""

from collections.abc import Sequence
from copy import copy, deepcopy

from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import GraphOutput

from daruma.state.messages import Growing, growing, plain

NONE_EVER: frozenset[int] = frozenset()
NEVER: tuple[int, ...] = ()
PARTS = st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=6)


def _sum(known: int, values: Sequence[int]) -> int:
    return known + sum(values)


def _looked_at(known: tuple[int, ...], values: Sequence[int]) -> tuple[int, ...]:
    return (*known, len(values))


def _ever(known: frozenset[int], values: Sequence[int]) -> frozenset[int]:
    return known.union(values)


def _multiples(known: tuple[int, int], values: Sequence[int]) -> tuple[int, int]:
    divisor, count = known
    return divisor, count + sum(value % divisor == 0 for value in values)


@given(PARTS, st.lists(st.booleans(), min_size=6, max_size=6))
def test_what_is_known_is_what_all_values_come_to(
    parts: list[list[int]], asked: list[bool]
) -> None:
    """In whatever parts the list grew, and however often somebody asked in between."""
    grown: Growing[int] = Growing()
    for part, ask in zip(parts, asked, strict=False):
        grown = grown.with_more(part)
        if ask:
            grown.known(_sum, 0)

    whole = [value for part in parts for value in part]
    assert grown == whole
    assert grown.known(_sum, 0) == sum(whole)
    assert grown.known(_ever, NONE_EVER) == set(whole)


@given(PARTS, PARTS)
def test_two_lists_that_grew_from_one_know_nothing_of_each_other(
    left: list[list[int]], right: list[list[int]]
) -> None:
    """A fork has what its own history says; the one it came from stays as it was."""
    trunk = Growing([7])
    trunk.known(_ever, NONE_EVER)
    one, other = trunk, trunk
    for part in left:
        one = one.with_more(part)
        one.known(_ever, NONE_EVER)
    for part in right:
        other = other.with_more(part)
        other.known(_ever, NONE_EVER)

    assert other.known(_ever, NONE_EVER) == {7, *(value for part in right for value in part)}
    assert one.known(_ever, NONE_EVER) == {7, *(value for part in left for value in part)}
    assert trunk.known(_ever, NONE_EVER) == {7}


def test_each_value_is_looked_at_once() -> None:
    """A copy, as a channel makes one for each look of a router, knows it too."""
    first = Growing([1, 2, 3])
    first.known(_looked_at, NEVER)
    first.known(_looked_at, NEVER)
    second = copy(first.with_more([4])).with_more([5])

    assert second.known(_looked_at, NEVER) == (3, 2)


def test_what_else_it_follows_from_is_not_mixed_up() -> None:
    """Of another divisor all is found out anew, and only the last one's is remembered."""
    first = Growing([1, 2, 3])
    first.known(_multiples, (2, 0), of=2)
    second = first.with_more([4, 6])

    assert second.known(_multiples, (3, 0), of=3) == (3, 2)
    assert second.with_more([8]).known(_multiples, (3, 0), of=3) == (3, 2)
    assert second.with_more([8]).known(_multiples, (2, 0), of=2) == (2, 4)


def test_what_a_list_begins_with_is_looked_at_apart() -> None:
    """So that whatever else begins with it knows of that, and looks at its own end only."""
    first = Growing([1, 2, 3])
    first.followed_by([4]).with_more([5]).known(_looked_at, NEVER)

    assert first.with_more([6, 7]).followed_by([8]).known(_looked_at, NEVER) == (3, 2, 1)
    assert first.followed_by([9]).known(_multiples, (3, 0), of=3) == (3, 2)
    assert first.followed_by([9]).known(_multiples, (2, 0), of=2) == (2, 1)


def test_what_was_found_out_otherwise_is_known_too() -> None:
    """It goes on from there."""
    first = Growing([1, 2, 3])
    first.note(_sum, 100)

    assert first.known(_sum, 0) == 100
    assert first.with_more([4]).known(_sum, 0) == 104


def test_what_is_known_goes_nowhere_else() -> None:
    """What is read back, or copied whole, is found out anew: its values may be others by then."""
    known = Growing([1, 2])
    known.known(_looked_at, NEVER)

    assert deepcopy(known).with_more([3]).known(_looked_at, NEVER) == (3,)


def test_a_list_that_knows_of_itself_is_taken_as_it_is() -> None:
    """Any other is made one."""
    known = Growing([1])

    assert growing(known) is known
    assert growing([1, 2]) == [1, 2]
    assert isinstance(growing([1, 2]), Growing)


def test_what_a_run_gives_back_holds_common_lists() -> None:
    """``asyncio`` shortens a list when it writes out what a coroutine returned, no other kind."""
    out = {"messages": Growing([1, 2]), "result": None, "plan": [3]}

    assert type(plain(out)["messages"]) is list
    assert plain(out) == {"messages": [1, 2], "result": None, "plan": [3]}
    assert type(plain(GraphOutput(value=out)).value["messages"]) is list
    assert plain(None) is None
    assert plain([out]) == [out]
