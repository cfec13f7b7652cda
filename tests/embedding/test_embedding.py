"""The server of the docs: many streams, one reviewer, one ``kill -9``, and nothing is lost."""

from collections import Counter
from pathlib import Path

import pytest
from tests.embedding.killing import come_of

STREAMS = 8


@pytest.mark.long
async def test_a_killed_server_loses_nothing(postgres_url: str, tmp_path: Path) -> None:
    """All runs are completed, each effect is there once, and every stream came to its end."""
    came = await come_of(tmp_path, postgres_url, STREAMS, kill_at=STREAMS // 2)

    assert came.statuses == {"completed": STREAMS}
    assert came.effects == Counter({1: STREAMS})
    assert came.events["run_stopped"] >= STREAMS
