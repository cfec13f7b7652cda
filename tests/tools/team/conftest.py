"""What tests of teams have in common: a data folder of their own, and a workspace."""

from pathlib import Path

import pytest
from tests.worktrees import a_repository


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with two commits, and work that is staged, unstaged and untracked."""
    return a_repository(tmp_path / "workspace")
