"""A git repository of its own for a worktree, made from the workspace's, which is only read.

It shares nothing with the one it was made from, not even files by hard links: what a command does
in there can not reach the user's repository. Nothing of the user's configuration is run, no hook,
no filter, no monitor.
"""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from daruma.tools.commands.command import run_in_group
from daruma.tools.errors import CommandRefused
from daruma.tools.files.threads import in_thread
from daruma.tools.sandbox.bubblewrap import SYSTEM

SECONDS: Final = 120.0
"""How long git may take to copy a repository; one of 1 GB takes about 5 s."""

_QUIET: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")


class _NotCopied(Exception):
    """Raised when there will be no repository; the text says why."""


async def copy_repository(workspace: Path, folder: Path) -> str:
    """Give ``folder`` the history of the workspace's repository, if there is one with a commit.

    Nothing is staged there, whatever is in the workspace. Returns why git can not be used in the
    folder; empty if it can, or if the workspace has no repository either.
    """
    copy = folder.with_name(f".{folder.name}.git")
    try:
        if await in_thread(_is_wanted, workspace, folder):
            await _copy(workspace, folder, copy)
    except (_NotCopied, CommandRefused, OSError) as error:
        await in_thread(shutil.rmtree, folder / ".git", ignore_errors=True)
        return f"git does not work here: {' '.join(str(error).split())[:300]}"
    finally:
        await in_thread(shutil.rmtree, copy, ignore_errors=True)
    return ""


async def _copy(workspace: Path, folder: Path, copy: Path) -> None:
    await in_thread(shutil.rmtree, copy, ignore_errors=True)
    cloning = ("clone", "-q", "--local", "--no-hardlinks", "--no-checkout", "--template=", "--")
    await _git(folder.parent, *cloning, str(workspace), str(copy))
    await _git(copy, "remote", "remove", "origin")
    await in_thread(_take_over, workspace / ".git" / "info" / "exclude", copy / ".git", folder)
    await _git(folder, "reset", "-q", "--mixed", "HEAD")


def _is_wanted(workspace: Path, folder: Path) -> bool:
    if os.path.lexists(folder / ".git"):  # it came with the files: the work itself has made it
        return False
    git = workspace / ".git"
    if os.path.lexists(git):
        _look_at_link(git) if _is(stat.S_ISREG, git) else _look_at(git)
        return True
    if any(os.path.lexists(each / ".git") for each in workspace.parents):
        raise _NotCopied("the repository begins above the workspace")
    return False


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    return kind(path.lstat().st_mode)


def _look_at(git: Path) -> None:
    """Refuse what would have git read elsewhere: a command may have put it there to see it."""
    elsewhere = ("commondir", "objects/info/alternates", "objects/info/http-alternates")
    real = _is(stat.S_ISDIR, git) and _is(stat.S_ISDIR, git / "objects")
    if not real or any(os.path.lexists(git / name) for name in elsewhere):
        raise _NotCopied("the repository has parts in other places")


def _look_at_link(git: Path) -> None:
    """Accept a worktree of git's own if the repository that it names knows of it."""
    named = Path(git.read_text(encoding="utf-8", errors="surrogateescape")[:4096].strip()[8:])
    own = Path(os.path.realpath(git.parent / named))
    back = ""
    with suppress(OSError):
        back = (own / "gitdir").read_text(encoding="utf-8", errors="surrogateescape").strip()
    inside = own.is_relative_to(os.path.realpath(git.parent))  # where commands can write
    if inside or not back or os.path.realpath(back) != os.path.realpath(git):
        raise _NotCopied("the repository that .git names does not know of this folder")


def _take_over(exclude: Path, git: Path, folder: Path) -> None:
    if exclude.is_file() and not exclude.is_symlink():
        (git / "info").mkdir(exist_ok=True)
        shutil.copyfile(exclude, git / "info" / "exclude", follow_symlinks=False)
    git.rename(folder / ".git")


async def _git(cwd: Path, *arguments: str) -> None:
    done = await run_in_group(
        ("git", *_QUIET, *arguments), cwd=cwd, timeout=SECONDS, env=git_environment(cwd)
    )
    if done.timed_out:
        raise _NotCopied(f"git {arguments[0]} took longer than {SECONDS:.0f} s")
    if not done.passed:
        said = done.stderr.strip().splitlines() or [f"git {arguments[0]} failed"]
        raise _NotCopied(said[0])


def git_environment(ceiling: Path) -> dict[str, str]:
    """Return an environment for git in which no configuration but a repository's own counts.

    Repositories above ``ceiling`` are not looked for.
    """
    places = [*SYSTEM, *os.environ.get("PATH", "").split(os.pathsep)]
    return {
        "PATH": os.pathsep.join(place for place in places if Path(place).is_absolute()),
        "LC_ALL": "C",
        "HOME": os.devnull,
        "GIT_CEILING_DIRECTORIES": str(ceiling.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
