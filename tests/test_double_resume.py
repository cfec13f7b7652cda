"""Two processes that resume one thread at the same moment: exactly one of them runs (DU-03)."""

from pathlib import Path

import pytest
from tests.double_resume import doubled


@pytest.mark.long
def test_of_two_that_resume_a_thread_at_once_one_runs(postgres_url: str, tmp_path: Path) -> None:
    """``python -m tests.double_resume`` does it a hundred times."""
    seen = doubled(postgres_url, tmp_path, 5)

    assert seen.pop("tools ran once") == 5
    assert {*seen} <= {"busy and ran", "ran and ran"}  # the second may come when all is done
