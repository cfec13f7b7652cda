"""Names of savepoints, and which of several of one name is meant."""

from dataclasses import replace

import pytest
from tests.parts import a_savepoint

from daruma.state.savepoint import (
    MOST,
    Drifted,
    append_savepoints,
    latest,
    newest_of_each,
    reduce_drifted,
)

OLD, OTHER = a_savepoint("1/a", at=1.0), a_savepoint("1/b", at=2.0)
NEW = replace(OLD, snapshot="newer", at=3.0)


def test_of_one_that_was_taken_again_the_last_counts() -> None:
    """A phase that was begun again."""
    assert latest([OLD, OTHER, NEW], "1/a") == NEW
    assert latest([OLD, OTHER, NEW], "1/c") is None


def test_each_is_listed_once_in_the_order_of_time() -> None:
    """The last of each."""
    assert newest_of_each([OLD, OTHER, NEW]) == (OTHER, NEW)


def test_history_only_grows() -> None:
    """The reducer takes any batch of writes."""
    assert append_savepoints([OLD], [[OTHER], [], [NEW]]) == [OLD, OTHER, NEW]


# --- Drifted paths of one task add up, within bounds.

KNOWN = Drifted(task_id="t/1", paths=("a", "b"))
OTHER_DRIFTED = Drifted(task_id="t/2", paths=("c",))


@pytest.mark.parametrize(
    ("known", "write", "expected"),
    [
        (None, None, None),
        (KNOWN, None, KNOWN),
        (None, KNOWN, KNOWN),
        (KNOWN, OTHER_DRIFTED, OTHER_DRIFTED),
        (KNOWN, Drifted(task_id="t/1", paths=("b", "c")), ("a", "b", "c")),
    ],
)
def test_paths_of_one_task_add_up(
    known: Drifted | None, write: Drifted | None, expected: Drifted | tuple[str, ...] | None
) -> None:
    """Each once; another task begins anew."""
    reduced = reduce_drifted(known, write)

    assert (reduced.paths if reduced and isinstance(expected, tuple) else reduced) == expected


def test_their_number_is_bounded() -> None:
    """A thread that is taken up again and again stores no more and more."""
    known = Drifted(task_id="t/1", paths=tuple(map(str, range(MOST))))

    reduced = reduce_drifted(known, OTHER_DRIFTED)
    grown = reduce_drifted(known, Drifted(task_id="t/1", paths=("more",)))

    assert reduced == OTHER_DRIFTED
    assert grown == known
