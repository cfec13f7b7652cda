"""The folders that team members work in: each has the files of a snapshot, and a git of its own."""

import json
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from daruma.state.errors import DarumaError
from daruma.tools.files.threads import in_thread
from daruma.tools.team.git_copy import copy_repository

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
