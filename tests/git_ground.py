"""A git that has nothing to do with the user's settings."""

import os
from pathlib import Path
from subprocess import run


def git(folder: Path, *arguments: str) -> bytes:
    """Run git in a folder, with the home beside it for settings; return what it says."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = run(
        ["git", "-c", "gc.auto=0", *arguments],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )
    return done.stdout


def repository(folder: Path) -> None:
    """Make a repository of a folder, with one commit of all that is in it."""
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
