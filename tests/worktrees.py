"""Workspaces with real repositories, and worktrees made from copies of them."""

import os
import shutil
from pathlib import Path
from subprocess import run

from daruma.tools.team import worktree_folder
from daruma.tools.team._worktree import Worktree, make

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
    """Run git as a user would, without this host's configuration, and return what it says."""
    done = run(["git", *arguments], cwd=at, env=OWN, check=True, capture_output=True, text=True)
    return done.stdout


def a_repository(top: Path) -> Path:
    """Make one with two commits, and work that is staged, unstaged and untracked."""
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
    """Return the folder of a phase's worktree."""
    return worktree_folder(workspace, "t", phase)


async def made(workspace: Path, phase: str = "p1") -> Worktree:
    """Make a worktree with what the workspace holds."""
    return await make(workspace, "s1", place(workspace, phase), Copies(workspace).materialise)
