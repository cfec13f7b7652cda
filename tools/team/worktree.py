"""The folders that team members work in: each has the files of a snapshot, and a git of its own."""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from daruma.state.data_dir import data_dir
from daruma.state.errors import DarumaError
from daruma.tools.commands.command import run_in_group
from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox.namespace import SYSTEM
from daruma.tools.threads import in_thread

# --- A git repository of its own for a worktree, made from the workspace's, which is only read.
#
# It shares nothing with the one it was made from, not even files by hard links: what a command does
# in there can not reach the user's repository. Nothing of the user's configuration is run, no hook,
# no filter, no monitor.

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


# --- Where the worktrees of team members lie.

_LONGEST: Final = 40
"""Characters of a phase's id that stand in the name of its folder."""


def worktree_folder(workspace: Path, thread: str, phase: str) -> Path:
    """Return where the member that carries out a phase works, whatever the phase is called."""
    readable = re.sub(r"[^A-Za-z0-9-]+", "_", phase)[:_LONGEST]
    top = data_dir() / "worktrees" / _digest(os.path.realpath(workspace))
    return top / _digest(thread)[:16] / f"{readable}-{_digest(phase)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


# --- The folders that team members work in: each has the files of a snapshot, and a git of its own.

_TRIES: Final = 16


class WorktreeUnavailable(DarumaError):
    """Raised when a worktree can not be made or removed; says why."""


class Materialising(Protocol):
    """What writes the files of a snapshot into a new folder; it blocks."""

    def materialise(self, snapshot: str, folder: Path) -> None:
        """Write them."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A folder to work in; ``note`` says what is missing in it, if anything is."""

    folder: Path
    note: str = ""


async def make(workspace: Path, snapshot: str, folder: Path, snapshots: Materialising) -> Worktree:
    """Make a worktree with the files of a snapshot of ``workspace``.

    One that was made from the same snapshot before is returned as it is, with what was done in it;
    one that is half there, or made from another, is made anew. Raises :class:`WorktreeUnavailable`,
    and what ``materialise`` raises; then nothing is left.
    """
    if (made := await in_thread(_made, folder, snapshot)) is not None:
        return made
    await remove(folder)
    try:
        await in_thread(_fill, folder, snapshot, snapshots)
        tree = Worktree(folder, await copy_repository(workspace, folder))
        await in_thread(_mark, tree, snapshot)
    except OSError as error:
        await remove(folder)
        raise WorktreeUnavailable(f"no worktree can be made at {folder}: {error}") from error
    except BaseException:
        await remove(folder)
        raise
    return tree


async def remove(folder: Path) -> None:
    """Remove a worktree with all that is in it; one that is not there is no error.

    Raises :class:`WorktreeUnavailable` if something stays.
    """
    try:
        await in_thread(_remove, folder)
    except OSError as error:
        raise WorktreeUnavailable(f"{folder} can not be removed: {error}") from error


def _made(folder: Path, snapshot: str) -> Worktree | None:
    """Return what the mark says; it lies beside the folder, where no command can write."""
    try:
        mark = json.loads(_mark_of(folder).read_text(encoding="utf-8"))
        made = Worktree(folder, mark["note"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made if mark["snapshot"] == snapshot and folder.is_dir() else None


def _fill(folder: Path, snapshot: str, snapshots: Materialising) -> None:
    for attempt in range(_TRIES):
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o755)
            break
        except FileNotFoundError:  # the end of another worktree took the empty folder around it
            if attempt == _TRIES - 1:
                raise
    snapshots.materialise(snapshot, folder)


def _mark(tree: Worktree, snapshot: str) -> None:
    mark = _mark_of(tree.folder)
    half = mark.with_suffix(".half")
    with half.open("w", encoding="utf-8") as file:
        json.dump({"snapshot": snapshot, "note": tree.note}, file)
        file.flush()
        os.fsync(file.fileno())
    half.replace(mark)


def _remove(folder: Path) -> None:
    _mark_of(folder).unlink(missing_ok=True)
    if os.path.lexists(folder):
        _open_up(folder)
        shutil.rmtree(folder)
    for empty in (folder.parent, folder.parent.parent):
        with suppress(OSError):
            empty.rmdir()


def _open_up(folder: Path) -> None:
    """Let the owner write in every folder: an ordinary user can not empty one that is closed."""
    folder.chmod(0o700)
    for at, names, _ in os.walk(folder):
        for name in names:
            path = Path(at, name)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                path.chmod(0o700)


def _mark_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.made")
