"""Calls of one answer, in any mix, with any replies, killed between any two durable steps."""

from pathlib import Path

import pytest
from tests.call_mixes import checked

FIRST = 200
"""Seeds below are those of ``python -m tests.call_mixes``."""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST, FIRST + 15))
def test_a_killed_mix_ends_as_one_that_was_not(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-02, TL-13a, DU-06: effects once, nobody asked twice about the same, one result each."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))

    assert checked(seed, tmp_path)[1] == []
