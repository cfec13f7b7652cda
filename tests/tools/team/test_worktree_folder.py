"""Each phase has a folder of its own, whatever its name."""

from pathlib import Path

import pytest
from tests.worktrees import place

from daruma.state.data_dir import data_dir
from daruma.tools.team.worktree import worktree_folder


@pytest.mark.parametrize("phase", ["../../x", "a/b", "", ".", "\n", "é" * 300, ".x.made"])
def test_any_phase_has_a_folder_of_its_own(phase: str, workspace: Path) -> None:
    """A model chooses these names; they never lead elsewhere."""
    folder = place(workspace, phase)

    assert folder.parent == place(workspace, "p1").parent
    assert folder != place(workspace, "p1")
    assert len(folder.name) < 60
    assert not folder.name.startswith(".")


def test_folders_are_told_apart_by_workspace_thread_and_phase(tmp_path: Path) -> None:
    """Also phases whose names differ only in signs that no folder's name can have."""
    places = {
        worktree_folder(tmp_path / workspace, thread, phase)
        for workspace in ("a", "b")
        for thread in ("t", "t/1")
        for phase in ("p 1", "p_1", "p/1")
    }

    assert len(places) == 12
    assert all(each.is_relative_to(data_dir() / "worktrees") for each in places)
