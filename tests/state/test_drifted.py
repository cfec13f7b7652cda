"""Drifted paths of one task add up, within bounds."""

import pytest

from daruma.state.savepoint import MOST, Drifted, reduce_drifted

KNOWN = Drifted(task_id="t/1", paths=("a", "b"))
OTHER = Drifted(task_id="t/2", paths=("c",))


@pytest.mark.parametrize(
    ("known", "write", "expected"),
    [
        (None, None, None),
        (KNOWN, None, KNOWN),
        (None, KNOWN, KNOWN),
        (KNOWN, OTHER, OTHER),
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

    reduced = reduce_drifted(known, OTHER)
    grown = reduce_drifted(known, Drifted(task_id="t/1", paths=("more",)))

    assert reduced == OTHER
    assert grown == known
