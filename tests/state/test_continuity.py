"""What is handed over does not take the place of what a thread has of its own."""

from typing import Any

import pytest

from daruma.state.conversation import RESUME, Continuity, reduce_continuity

OPEN = Continuity(mode=RESUME)
STALE = Continuity(status="stale")
GIVEN = {"pending_action": "pay"}


@pytest.mark.parametrize(
    ("known", "write", "kept"),
    [
        (None, GIVEN, GIVEN),
        (STALE, GIVEN, GIVEN),
        (Continuity(), GIVEN, GIVEN),
        (OPEN, GIVEN, OPEN),
        ({"action": "old"}, GIVEN, {"action": "old"}),
        (OPEN, STALE, STALE),
        (GIVEN, STALE, STALE),
        (OPEN, None, None),
    ],
)
def test_a_threads_own_continuity_is_kept(known: Any, write: Any, kept: Any) -> None:
    """CO-02: what is open on it, also where an old checkpoint holds it raw; nodes write all."""
    assert reduce_continuity(known, write) == kept
