"""A worktree has the files of a snapshot, is made once, and leaves nothing."""

import asyncio
from pathlib import Path

import pytest
from tests.worktrees import Copies, git, made, place

from daruma.tools.snapshots.outcome import SnapshotUnavailable
from daruma.tools.team.worktree import WorktreeUnavailable, make, remove


async def test_a_finished_worktree_is_used_as_it_is(workspace: Path) -> None:
    """What was done in it is not lost when the machine is started again."""
    snapshots = Copies(workspace)
    first = await make(workspace, "s1", place(workspace), snapshots)
    (first.folder / "done.txt").write_text("done")
    again = await make(workspace, "s1", place(workspace), snapshots)

    assert again == first
    assert (again.folder / "done.txt").read_text() == "done"
    assert snapshots.written == ["s1"]


async def test_a_note_is_kept(tmp_path: Path) -> None:
    """It is told again when the machine is started again."""
    top = tmp_path / "empty"
    top.mkdir()
    git(top, "init", "-q")

    assert await made(top) == await made(top)
    assert (await made(top)).note


async def test_one_of_another_snapshot_is_made_anew(workspace: Path) -> None:
    """Its files would be taken for the member's work."""
    first = await made(workspace)
    (first.folder / "old.txt").write_text("old")
    await make(workspace, "s2", place(workspace), Copies(workspace))

    assert not (first.folder / "old.txt").exists()


async def test_a_half_made_worktree_is_made_anew(workspace: Path) -> None:
    """A crash leaves one without its mark, with folders that are closed, and half a repository."""
    folder = place(workspace)
    for half in (folder / "closed", folder.with_name(f".{folder.name}.git")):
        half.mkdir(parents=True)
        (half / "x").touch()
    (folder / "closed").chmod(0o500)
    tree = await made(workspace)

    assert not (folder / "closed").exists()
    assert tree.note == ""
    assert git(folder, "log", "--format=%s") == "second\nfirst\n"


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (OSError("disk full"), WorktreeUnavailable),
        (SnapshotUnavailable("gone"), SnapshotUnavailable),
    ],
)
async def test_what_fails_leaves_nothing(
    fault: Exception, raised: type[Exception], workspace: Path, data: Path
) -> None:
    """The error says why."""
    with pytest.raises(raised, match=str(fault)):
        await make(workspace, "s1", place(workspace), Copies(workspace, fault))

    assert list((data / "worktrees").rglob("*")) == []


async def test_a_removed_worktree_leaves_nothing(workspace: Path, data: Path) -> None:
    """Closed folders and links included, whose targets stay; to remove it twice is no error."""
    tree = await made(workspace)
    (tree.folder / "closed").mkdir()
    (tree.folder / "closed" / "x").touch()
    (tree.folder / "closed").chmod(0)
    (tree.folder / "out").symlink_to(workspace)
    await remove(tree.folder)
    await remove(tree.folder)

    assert list((data / "worktrees").rglob("*")) == []
    assert (workspace / "new.txt").exists()


async def test_worktrees_come_and_go_side_by_side(workspace: Path) -> None:
    """The end of one takes no folder away that another is about to use."""

    async def one(phase: str) -> str:
        for _ in range(3):
            tree = await made(workspace, phase)
            await remove(tree.folder)
        return (await made(workspace, phase)).note

    assert await asyncio.gather(*(one(f"p{n}") for n in range(4))) == [""] * 4
