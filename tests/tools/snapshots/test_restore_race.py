"""Directories that become links while a workspace is put back (RO-06, ED-02)."""

from pathlib import Path

import pytest
from tests.snapshot_race import race


def test_a_directory_swapped_for_a_link_lets_no_restore_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written or deleted where the link leads; ``python -m tests.snapshot_race``."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))

    raced = race(tmp_path, lambda number: number < 50)

    assert raced.after == raced.before
    assert raced.swaps > 0
