"""A worktree has the files of a snapshot, is made once, and leaves nothing."""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path, PosixPath
from typing import ClassVar

import pytest
from tests.worktrees import Copies, git, made, place
from typing_extensions import override

from daruma.state.data_dir import data_dir
from daruma.tools.snapshots import SnapshotUnavailable
from daruma.tools.team import WorktreeUnavailable, remove_worktree, worktree_folder
from daruma.tools.team._worktree import make


async def test_a_finished_worktree_is_used_as_it_is(workspace: Path) -> None:
    """What was done in it is not lost when the machine is started again."""
    snapshots = Copies(workspace)
    first = await make(workspace, "s1", place(workspace), snapshots.materialise)
    (first.folder / "done.txt").write_text("done")
    again = await make(workspace, "s1", place(workspace), snapshots.materialise)

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
    await make(workspace, "s2", place(workspace), Copies(workspace).materialise)

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
        await make(workspace, "s1", place(workspace), Copies(workspace, fault).materialise)

    assert list((data / "worktrees").rglob("*")) == []


async def test_a_removed_worktree_leaves_nothing(workspace: Path, data: Path) -> None:
    """Closed folders and links included, whose targets stay; to remove it twice is no error."""
    tree = await made(workspace)
    (tree.folder / "closed").mkdir()
    (tree.folder / "closed" / "x").touch()
    (tree.folder / "closed").chmod(0)
    (tree.folder / "out").symlink_to(workspace)
    await remove_worktree(tree.folder)
    await remove_worktree(tree.folder)

    assert list((data / "worktrees").rglob("*")) == []
    assert (workspace / "new.txt").exists()


@pytest.mark.long
async def test_worktrees_come_and_go_side_by_side(workspace: Path) -> None:
    """The end of one takes no folder away that another is about to use."""

    async def one(phase: str) -> str:
        for _ in range(3):
            tree = await made(workspace, phase)
            await remove_worktree(tree.folder)
        return (await made(workspace, phase)).note

    assert await asyncio.gather(*(one(f"p{n}") for n in range(4))) == [""] * 4


class Crossed(PosixPath):
    """A folder that is taken away between a try to make it and the look whether it is there."""

    tries: ClassVar[list[Path]] = []

    @override
    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if exist_ok:
            self.tries.append(self)
            if len(self.tries) == 1:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self))
        super().mkdir(mode, parents, exist_ok)


async def test_the_end_of_another_does_not_cross_it(workspace: Path) -> None:
    """PL-08: helpers that are at work at once have one folder around theirs."""
    folder = Crossed(place(workspace))

    assert (await make(workspace, "s1", folder, Copies(workspace).materialise)).folder == folder


# --- Each phase has a folder of its own, whatever its name.


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


# --- A worktree has a git of its own; the user's is only read.


def everything(top: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time of change and content of all that lies beneath, by path."""
    found = sorted(top.rglob("*"))
    return {
        str(path.relative_to(top)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in found
    }


async def test_git_works_in_a_worktree(workspace: Path) -> None:
    """Status, diff and log say what they say in the workspace, but that nothing is staged."""
    tree = await made(workspace)

    assert tree.note == ""
    assert git(tree.folder, "log", "--format=%s") == "second\nfirst\n"
    assert git(tree.folder, "diff") == git(workspace, "diff")
    assert git(tree.folder, "status", "--short") == " M src/a.py\n?? new.txt\n?? staged.txt\n"
    assert git(tree.folder, "branch", "--show-current") == "main\n"
    assert git(tree.folder, "remote") == ""


async def test_the_users_repository_stays_as_it_was(workspace: Path, tmp_path: Path) -> None:
    """Byte for byte, also when the member commits; and no hook, filter or monitor of it is run."""
    canary = tmp_path / "canary"
    script = f"#!/bin/sh\ntouch {canary}\ncat\n"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        (workspace / ".git" / "hooks" / name).write_text(script)
        (workspace / ".git" / "hooks" / name).chmod(0o755)
    (tmp_path / "run").write_text(script)
    (tmp_path / "run").chmod(0o755)
    config = f'[core]\nfsmonitor = {tmp_path}/run\n[filter "x"]\nclean = {tmp_path}/run\n'
    with (workspace / ".git" / "config").open("a") as file:
        file.write(config)
    (workspace / ".git" / "info").mkdir(exist_ok=True)
    (workspace / ".git" / "info" / "attributes").write_text("* filter=x\n")
    before = everything(workspace)
    tree = await made(workspace)
    git(tree.folder, "add", "-A")
    git(tree.folder, "commit", "-qm", "mine")
    git(tree.folder, "gc", "-q")

    assert everything(workspace) == before
    assert not canary.exists()
    assert git(tree.folder, "log", "--format=%s").splitlines()[0] == "mine"


async def test_no_file_is_shared_with_the_users_repository(workspace: Path) -> None:
    """A hard link would let a command in the worktree write into the user's objects."""
    tree = await made(workspace)

    files = [path for path in (tree.folder / ".git").rglob("*") if path.is_file()]
    assert files
    assert {path.stat().st_nlink for path in files} == {1}


async def test_what_the_user_has_git_ignore_is_ignored(workspace: Path) -> None:
    """Rules in the repository's own `info/exclude` come along."""
    (workspace / ".git" / "info").mkdir(exist_ok=True)
    (workspace / ".git" / "info" / "exclude").write_text("scratch/\n")
    tree = await made(workspace)
    (tree.folder / "scratch").mkdir()
    (tree.folder / "scratch" / "x").touch()

    assert "scratch" not in git(tree.folder, "status", "--short")


async def test_a_worktree_of_gits_own_can_be_copied(workspace: Path, tmp_path: Path) -> None:
    """There `.git` is a file, which names a repository that knows of it."""
    git(workspace, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    tree = await made(tmp_path / "side")

    assert tree.note == ""
    assert git(tree.folder, "branch", "--show-current") == "side\n"
    assert git(tree.folder, "status", "--short") == ""


def named_in_a_file(own: Path, secret: Path) -> None:
    shutil.rmtree(own)
    own.write_text(f"gitdir: {secret}\n")


def named_by_one_of_ours(own: Path, secret: Path) -> None:
    shutil.rmtree(own)
    fake = own.parent / "fake"
    fake.mkdir()
    own.write_text("gitdir: fake\n")
    for name, text in (("gitdir", own), ("commondir", secret), ("HEAD", "ref: refs/heads/main")):
        (fake / name).write_text(f"{text}\n")
    assert git(own.parent, "log", "--format=%s") == "second\nfirst\n"


def named_by_a_pipe(own: Path, _: Path) -> None:
    """Whoever opens it as a file waits for ever."""
    shutil.rmtree(own)
    own.write_text("gitdir: ../fake\n")
    (own.parents[1] / "fake").mkdir()
    os.mkfifo(own.parents[1] / "fake/gitdir")


def linked(own: Path, secret: Path) -> None:
    shutil.rmtree(own)
    own.symlink_to(secret)


def with_a_shared_folder(own: Path, secret: Path) -> None:
    (own / "commondir").write_text(f"{secret}\n")


def with_borrowed_objects(own: Path, secret: Path) -> None:
    (own / "objects" / "info" / "alternates").write_text(f"{secret}/objects\n")
    head = git(secret.parent, "rev-parse", "HEAD")
    (own / "refs" / "heads" / "main").write_text(head)


def with_linked_objects(own: Path, secret: Path) -> None:
    shutil.rmtree(own / "objects")
    (own / "objects").symlink_to(secret / "objects")
    head = git(secret.parent, "rev-parse", "HEAD")
    (own / "refs" / "heads" / "main").write_text(head)


@pytest.mark.parametrize(
    "lead_to",
    [
        named_in_a_file,
        named_by_one_of_ours,
        named_by_a_pipe,
        linked,
        with_a_shared_folder,
        with_borrowed_objects,
        with_linked_objects,
    ],
)
async def test_another_repository_is_not_brought_in(
    lead_to: Callable[[Path, Path], None], workspace: Path, tmp_path: Path
) -> None:
    """What stands in `.git` may be from a command, which must not see what lies elsewhere."""
    mine = tmp_path / "mine"
    mine.mkdir()
    git(mine, "init", "-q", "-b", "main")
    lead_to(mine / ".git", workspace / ".git")
    tree = await made(mine)

    assert tree.note.startswith("git does not work here: the repository")
    assert not (tree.folder / ".git").exists()


async def test_a_repository_that_the_files_hold_stays(workspace: Path) -> None:
    """One that the work itself has made is among the files of a snapshot, as any folder."""
    folder = place(workspace)

    class Own(Copies):
        def materialise(self, snapshot: str, folder: Path) -> None:
            super().materialise(snapshot, folder)
            (folder / ".git").mkdir()

    tree = await make(workspace, "s1", folder, Own(workspace).materialise)

    assert tree.note == ""
    assert list((folder / ".git").iterdir()) == []


async def test_without_a_commit_the_files_are_there(tmp_path: Path) -> None:
    """The note says that git can not be used."""
    top = tmp_path / "empty"
    top.mkdir()
    git(top, "init", "-q")
    (top / "a").write_text("a")
    tree = await made(top)

    assert (tree.folder / "a").read_text() == "a"
    assert tree.note.startswith("git does not work here: ")
    assert not (tree.folder / ".git").exists()


async def test_without_git_the_files_are_there(workspace: Path) -> None:
    """A damaged repository, of a version that nobody knows yet."""
    with (workspace / ".git" / "config").open("a") as file:
        file.write("[core]\nrepositoryformatversion = 99\n")
    tree = await made(workspace)

    assert (tree.folder / "new.txt").read_text() == "n\n"
    assert "git does not work here: " in tree.note
    assert "99" in tree.note


@pytest.mark.parametrize(("above", "note"), [(True, "above the workspace"), (False, "")])
async def test_without_a_repository_there_is_no_git(above: bool, note: str, tmp_path: Path) -> None:
    """It is said where there is one around the workspace, which git would have found."""
    top = tmp_path / "around" / "inner"
    top.mkdir(parents=True)
    if above:
        git(tmp_path / "around", "init", "-q")
    tree = await made(top)

    assert tree.note.endswith(note)
    assert bool(tree.note) is above
    assert not (tree.folder / ".git").exists()
