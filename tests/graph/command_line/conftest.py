"""The command line as tests use it."""

from pathlib import Path

import pytest
from tests.daruma_command import Daruma


@pytest.fixture
def daruma(
    postgres_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Daruma:
    """The command, on a database of its own, with a workspace ``ws`` that has nothing to verify."""
    (tmp_path / "ws").mkdir()
    return Daruma(postgres_url, tmp_path, monkeypatch, capsys)
