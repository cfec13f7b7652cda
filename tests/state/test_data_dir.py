"""Everything that is kept outside of workspaces lies in one folder."""

from pathlib import Path

import pytest

from daruma.state.data_dir import data_dir


def test_the_environment_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the home folder spelled out."""
    monkeypatch.setenv("DARUMA_DATA_DIR", "~/kept")

    assert data_dir() == Path.home() / "kept"


@pytest.mark.parametrize("value", [None, ""])
def test_else_it_is_the_users_own(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """An empty variable is none: else the current folder would fill up."""
    monkeypatch.delenv("DARUMA_DATA_DIR", raising=False)
    if value is not None:
        monkeypatch.setenv("DARUMA_DATA_DIR", value)

    assert data_dir().name == "daruma"
    assert data_dir().is_absolute()
