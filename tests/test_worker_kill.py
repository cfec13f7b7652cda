"""A worker that is killed: another one takes up its jobs, and nothing is done twice (DU-07)."""

from collections import Counter
from pathlib import Path

import pytest
from tests.worker_kill import killed

THREADS = 50


@pytest.mark.parametrize("dies_at", [20])
def test_a_dead_worker_s_threads_are_completed_by_another(
    postgres_url: str, tmp_path: Path, dies_at: int
) -> None:
    """Fifty threads, two processes, ``kill -9`` between a tool and the next request."""
    came = killed(postgres_url, tmp_path / "effects", THREADS, dies_at)

    assert "now" in came.told
    assert came.statuses == {"completed": THREADS}
    assert came.effects == Counter(f"thread-{number:03}" for number in range(THREADS))
    assert came.left == 0
