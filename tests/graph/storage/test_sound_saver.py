"""Much is unpacked in a thread, and little where it is."""

import threading

import pytest

from daruma.graph.storage._sound_saver import off_loop


@pytest.mark.parametrize(("size", "here"), [(0, True), (60_000, True), (1_000_000, False)])
async def test_only_much_work_is_done_elsewhere(size: int, here: bool) -> None:
    """A thread's waking costs more than reading a short history."""
    where = await off_loop(size, threading.get_ident)

    assert (where == threading.get_ident()) == here


async def test_what_goes_wrong_there_is_raised_here() -> None:
    """So that the damage is named in either case."""

    def fail() -> None:
        raise LookupError("lost")

    for size in (0, 1_000_000):
        with pytest.raises(LookupError, match="lost"):
            await off_loop(size, fail)
