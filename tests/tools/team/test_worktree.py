"""A worktree has the files of a snapshot and a git of its own; the user's is only read."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import pytest

from daruma.state.data_dir import data_dir
from daruma.tools.snapshots.outcome import SnapshotUnavailable
from daruma.tools.team.worktree import (
    Worktree,
    WorktreeUnavailable,
    make,
    remove,
    worktree_folder,
)

OWN = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "me",
    "GIT_AUTHOR_EMAIL": "me@example.org",
    "GIT_COMMITTER_NAME": "me",
    "GIT_COMMITTER_EMAIL": "me@example.org",
    "PATH": os.environ["PATH"],
}


class Copies:
    """Stands for snapshots: what it writes is what the workspace holds, but for `.git`."""

    def __init__(self, workspace: Path, fails: Exception | None = None) -> None:
        self.workspace, self.fails = workspace, fails
        self.written: list[str] = []

    def materialise(self, snapshot: str, folder: Path) -> None:
        self.written.append(snapshot)
        ignored = shutil.ignore_patterns(".git")
        shutil.copytree(self.workspace, folder, symlinks=True, ignore=ignored, dirs_exist_ok=True)
        if self.fails:
            raise self.fails


def git(at: Path, *arguments: str) -> str:
    done = run(["git", *arguments], cwd=at, env=OWN, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with two commits, and work that is staged, unstaged and untracked."""
    top = tmp_path / "workspace"
    (top / "src").mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    (top / "src" / "a.py").write_text("one\n")
    (top / "b.txt").write_text("b\n")
    for message in ("first", "second"):
        (top / "c.txt").write_text(message)
        git(top, "add", "-A")
        git(top, "commit", "-qm", message)
    (top / "src" / "a.py").write_text("one\ntwo\n")
    (top / "staged.txt").write_text("s\n")
    git(top, "add", "staged.txt")
    (top / "new.txt").write_text("n\n")
    return top


def place(workspace: Path, phase: str = "p1") -> Path:
    return worktree_folder(workspace, "t", phase)


async def made(workspace: Path, phase: str = "p1") -> Worktree:
    return await make(workspace, "s1", place(workspace, phase), Copies(workspace))


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


@pytest.mark.parametrize("way", ["file", "own file", "link", "commondir", "alternates"])
async def test_another_repository_is_not_brought_in(
    way: str, workspace: Path, tmp_path: Path
) -> None:
    """What stands in `.git` may be from a command, which must not see what lies elsewhere."""
    mine = tmp_path / "mine"
    mine.mkdir()
    git(mine, "init", "-q")
    own, secret = mine / ".git", workspace / ".git"
    if way in ("file", "link", "own file"):
        shutil.rmtree(own)
    if way == "file":
        own.write_text(f"gitdir: {secret}\n")
    elif way == "own file":
        (mine / "fake").mkdir()
        own.write_text("gitdir: fake\n")
        for name, text in (
            ("gitdir", own),
            ("commondir", secret),
            ("HEAD", "ref: refs/heads/main"),
        ):
            (mine / "fake" / name).write_text(f"{text}\n")
        assert git(mine, "log", "--format=%s") == "second\nfirst\n"
    elif way == "link":
        own.symlink_to(secret)
    elif way == "commondir":
        (own / "commondir").write_text(f"{secret}\n")
    else:
        (own / "objects" / "info" / "alternates").write_text(f"{secret}/objects\n")
    tree = await made(mine)

    assert tree.note.startswith("git does not work here: ")
    assert not (tree.folder / ".git").exists()


async def test_a_repository_that_the_files_hold_stays(workspace: Path) -> None:
    """One that the work itself has made is among the files of a snapshot, as any folder."""
    folder = place(workspace)

    class Own(Copies):
        def materialise(self, snapshot: str, folder: Path) -> None:
            super().materialise(snapshot, folder)
            (folder / ".git").mkdir()

    tree = await make(workspace, "s1", folder, Own(workspace))

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


async def test_without_git_the_files_are_there(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
