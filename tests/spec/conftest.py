"""What the chapters work with: a workspace, and the command line."""

from pathlib import Path

import pytest
from tests.spec.face import Daruma


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and one beside it for Daruma's own data."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def daruma(
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Daruma:
    """The command, on a database of its own, beside a workspace ``ws``."""
    (tmp_path / "ws").mkdir(exist_ok=True)
    return Daruma(postgres_url, tmp_path, monkeypatch, capsys)
