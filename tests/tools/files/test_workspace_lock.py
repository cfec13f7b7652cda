"""Two runs of one host do not work in one workspace, nor in one inside the other (DU-03)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daruma.state.errors import WorkspaceBusy
from daruma.tools.files.workspace import aworkspace_locked, workspace_locked

HOLDER = """
import sys
from daruma.tools.files.workspace import workspace_locked
with workspace_locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def places(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "link").symlink_to("a")
    return tmp_path


@pytest.mark.parametrize("other", ["a", "a/b", ".", "link", "link/b"])
def test_the_same_files_are_kept_apart(places: Path, other: str) -> None:
    """The folder itself, one in it, one above it, and by another name."""
    busy = pytest.raises(WorkspaceBusy, match=r"^another run on this machine works in ")
    with workspace_locked(str(places / "a")), busy, workspace_locked(str(places / other)):
        pytest.fail("two at work")

    with workspace_locked(str(places / other)):
        pass


def test_other_folders_are_free(places: Path) -> None:
    """Beside each other, with the folder above them in common."""
    with workspace_locked(str(places / "a")), workspace_locked(str(places / "c")):
        pass


def test_a_task_without_a_workspace_and_one_that_is_gone_lock_nothing(places: Path) -> None:
    """Tools say themselves what they miss."""
    with workspace_locked(None), workspace_locked(str(places / "gone")):
        pass


async def test_it_is_locked_and_left_asynchronously_too(places: Path) -> None:
    """While nothing is to be locked where there is no workspace."""
    named = str(places / "a")
    async with aworkspace_locked(None), aworkspace_locked(named):
        with pytest.raises(WorkspaceBusy), workspace_locked(named):
            pytest.fail("two at work")

    with workspace_locked(named):
        pass


def test_a_killed_process_leaves_nothing_locked(places: Path) -> None:
    """While it lives, it does."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(places / "a")]
    holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(WorkspaceBusy), workspace_locked(str(places / "a")):
        pytest.fail("two at work")
    holder.kill()
    holder.communicate()

    with workspace_locked(str(places / "a")):
        assert not os.listdir(places / "a" / "b")  # noqa: PTH208 - and nothing lies there
