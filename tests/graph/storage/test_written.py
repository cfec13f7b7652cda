"""When a checkpoint was written is known, whatever became of its row."""

from datetime import UTC, datetime, timedelta

import pytest
from langgraph.checkpoint.base.id import uuid6

from daruma.graph.storage.pruning import written_at


def test_a_checkpoint_notes_its_time() -> None:
    """With the time zone of its writer."""
    noted = datetime(2026, 11, 22, 6, 30, tzinfo=UTC)

    assert written_at("x", noted.isoformat()) == noted


@pytest.mark.parametrize("noted", [None, "", "x", "2026-99-01T00:00:00+00:00"])
def test_else_its_id_tells_it(noted: str | None) -> None:
    """Ids are made from the time; that is how the newest one is found."""
    before = datetime.now(UTC) - timedelta(milliseconds=2)
    told = written_at(str(uuid6()), noted)

    assert before <= told <= datetime.now(UTC) + timedelta(milliseconds=2)


def test_one_that_tells_neither_is_the_oldest() -> None:
    """A list of threads is sorted by other things: nothing depends on it."""
    assert written_at("no id", None) == datetime(1970, 1, 1, tzinfo=UTC)
