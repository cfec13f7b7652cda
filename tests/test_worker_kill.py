"""A worker that is killed: another one takes up its jobs, and nothing is done twice (DU-07)."""

from collections import Counter
from pathlib import Path

import pytest
from tests.worker_kill import killed


@pytest.mark.parametrize(
    ("threads", "dies_at"), [(6, 2), pytest.param(50, 20, marks=pytest.mark.long)]
)
def test_a_dead_worker_s_threads_are_completed_by_another(
    postgres_url: str, tmp_path: Path, threads: int, dies_at: int
) -> None:
    """Two processes, ``kill -9`` between a tool and the next request."""
    came = killed(postgres_url, tmp_path / "effects", threads, dies_at)

    assert "now" in came.told
    assert came.statuses == {"completed": threads}
    assert came.effects == Counter(f"thread-{number:03}" for number in range(threads))
    assert came.left == 0
