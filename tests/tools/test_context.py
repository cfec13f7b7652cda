"""A run's live things: its workspace is opened for it, its edits are remembered for its thread."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import a_context

from daruma.tools.errors import ToolError


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    return tmp_path / "data"


async def test_without_a_workspace_tools_have_only_their_time() -> None:
    """Nothing is opened."""
    surroundings = await a_context().surroundings(None, timeout=3.0)

    assert (surroundings.workspace, surroundings.history, surroundings.timeout) == (None, None, 3)
    with pytest.raises(ToolError, match="needs a workspace"):
        surroundings.needs_history()


async def test_a_workspace_is_opened(tmp_path: Path) -> None:
    """By its path."""
    surroundings = await a_context().surroundings(str(tmp_path / "work"))

    assert surroundings.needs_workspace().root == (tmp_path / "work").resolve()
    assert surroundings.needs_history()


async def test_a_workspace_that_is_gone_is_told(tmp_path: Path) -> None:
    """It may be deleted between two steps; that is no bug."""
    with pytest.raises(ToolError):
        await a_context().surroundings(str(tmp_path / "gone"))


async def test_threads_do_not_undo_each_others_edits(tmp_path: Path) -> None:
    """ED-01: what is remembered for ``undo`` belongs to one thread in one workspace."""
    context, work = a_context(), str(tmp_path / "work")
    other = replace(context, thread_id="other")

    places = [
        (await each.surroundings(place)).needs_history()
        for each, place in ((context, work), (context, work), (other, work))
    ]

    assert vars(places[0]) == vars(places[1])
    assert vars(places[0]) != vars(places[2])
