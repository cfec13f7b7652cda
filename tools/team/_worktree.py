"""The worktrees of team members: made with the files of a snapshot, and merged into the
workspace.
"""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from daruma.state.data_dir import data_dir
from daruma.state.errors import DarumaError
from daruma.state.outcome import join_paths
from daruma.state.plan import Assignment, Report
from daruma.state.task import Task
from daruma.tools.commands import CannotRun, run_git
from daruma.tools.errors import ToolError
from daruma.tools.files import LARGEST_INDEX, common_folder, content_of, is_lasting, own_folder
from daruma.tools.snapshots import Entry, Snapshot, Snapshots, SnapshotUnavailable, snapshot_before
from daruma.tools.team._merging import Flat, Merge, changed_paths, flat, merge_changes, with_markers
from daruma.tools.threads import in_thread

if TYPE_CHECKING:  # what deletes a thread needs none of it (FA-13)
    from daruma.tools.context import Context

# --- A git repository of its own for a worktree, made from the workspace's, which is only read.
#
# It shares nothing with the one it was made from, not even files by hard links: what a command does
# in there can not reach the user's repository. It is read without git, and its settings are not
# taken over: whatever a command left there, git does not come near it (SE-01).

SECONDS: Final = 120.0
"""How long git may take to list what is committed."""

_SETTINGS: Final = "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n"
_SHA256: Final = "[extensions]\n\tobjectformat = sha256\n"


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
            await in_thread(_copy, workspace / ".git", folder, copy)
    except (_NotCopied, OSError) as error:
        await in_thread(shutil.rmtree, folder / ".git", ignore_errors=True)
        return f"git does not work here: {' '.join(str(error).split())[:300]}"
    finally:
        await in_thread(shutil.rmtree, copy, ignore_errors=True)
    return ""


def _copy(git: Path, folder: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    own, common = own_folder(git), common_folder(git)
    for name in ("objects", "refs"):
        shutil.copytree(common / name, copy / name, ignore=_not_of_objects)
    for source, name in ((own, "HEAD"), (common, "packed-refs"), (common, "shallow")):
        if data := content_of(source / name, most=LARGEST_INDEX):
            (copy / name).write_bytes(data)
    (copy / "info").mkdir()
    (copy / "info" / "exclude").write_bytes(content_of(common / "info" / "exclude"))
    given = content_of(common / "config")
    version = _setting(given, "core.repositoryformatversion") or "0"
    if not version.isdecimal():
        raise _NotCopied("the version of the repository can not be read")
    sha256 = _setting(given, "extensions.objectformat") == "sha256"
    settings = _SETTINGS.format(version=version) + _SHA256 * sha256
    (copy / "config").write_text(settings, encoding="utf-8")
    copy.rename(folder / ".git")
    _git(folder, "reset", "-q", "--mixed", "HEAD")


def _setting(given: bytes, name: str) -> str:
    """Return what a file of settings says of one; what it includes is not looked at."""
    reading = ("config", "--file", "-", "--no-includes", "--default=", "--get", name)
    return _git(Path("/"), *reading, data=given)


def _not_of_objects(at: str, names: list[str]) -> list[str]:
    """Return what is neither file nor folder, and what would have git read elsewhere."""
    kinds = {name: Path(at, name).lstat().st_mode for name in names}
    odd = [name for name, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]
    return [*odd, "alternates", "http-alternates"]


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
    own = Path(os.path.realpath(own_folder(git)))
    back = os.fsdecode(content_of(own / "gitdir").partition(b"\0")[0]).strip()
    inside = own.is_relative_to(os.path.realpath(git.parent))  # where commands can write
    if inside or not back or os.path.realpath(back) != os.path.realpath(git):
        raise _NotCopied("the repository that .git names does not know of this folder")


def _git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    try:
        done = run_git(*arguments, folder=folder, data=data, seconds=SECONDS)
    except CannotRun as error:
        raise _NotCopied(str(error)) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _NotCopied(said[0] if said else f"git {arguments[0]} failed")
    return done.stdout.decode(errors="replace").strip()


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

Writer = Callable[[str, Path], object]
"""Writes the files of a snapshot into a new folder; it blocks."""


class WorktreeUnavailable(DarumaError):
    """Raised when a worktree can not be made or removed; says why."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A folder to work in; ``note`` says what is missing in it, if anything is."""

    folder: Path
    note: str = ""


async def make(workspace: Path, snapshot: str, folder: Path, materialise: Writer) -> Worktree:
    """Make a worktree with the files of a snapshot of ``workspace``, which ``materialise`` writes.

    One that was made from the same snapshot before is returned as it is, with what was done in it;
    one that is half there, or made from another, is made anew. Raises :class:`WorktreeUnavailable`,
    and what ``materialise`` raises; then nothing is left.
    """
    if (made := await in_thread(_made, folder, snapshot)) is not None:
        return made
    await remove_worktree(folder)
    try:
        await in_thread(_fill, folder, snapshot, materialise)
        tree = Worktree(folder, await copy_repository(workspace, folder))
        await in_thread(_mark, tree, snapshot)
    except OSError as error:
        await remove_worktree(folder)
        raise WorktreeUnavailable(f"no worktree can be made at {folder}: {error}") from error
    except BaseException:
        await remove_worktree(folder)
        raise
    return tree


async def remove_worktree(folder: Path) -> None:
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


def _fill(folder: Path, snapshot: str, materialise: Writer) -> None:
    for attempt in range(_TRIES):
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o755)
            break
        except (FileNotFoundError, FileExistsError):
            # The end of another worktree took the empty folder around it, or takes it just now.
            if attempt == _TRIES - 1:
                raise
    materialise(snapshot, folder)


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


# --- Bringing a member's work from its worktree into the workspace; all of it, or none.

_MARKED: Final = "conflicts to settle"

MARKER: Final = b"<<<<<<< the workspace\n"
"""Begins a conflict in a text: see :func:`daruma.tools.team._merging.merge_text`."""


class Unsettled(DarumaError):
    """Raised when what was to settle a conflict still holds both sides of it."""


@dataclass(frozen=True)
class JoinOutcome:
    """What came into the workspace, what is in conflict and why, and a note on what is left out."""

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: str = ""


def join_work(workspace: Snapshots, began: str, ended: str, label: str) -> JoinOutcome:
    """Bring what changed between two snapshots of a worktree into the workspace.

    Done again it changes nothing. Blocks. Raises
    :class:`~daruma.tools.snapshots.SnapshotUnavailable`, also for a workspace that could
    not be brought to what was meant.
    """
    now = workspace.take(f"before {label}", by="others", opens=True).snapshot.id
    merge, paths = _merge(workspace, now, began, ended, None)
    if merge.conflicts:
        return JoinOutcome(conflicts=tuple(f"{each.path} ({each.why})" for each in merge.conflicts))
    _apply(workspace, merge.goal, label)
    return JoinOutcome(paths=paths)  # also where a killed run had brought them in


def check_settled(workspace: Snapshots, began: str, ended: str) -> None:
    """Look for what a member that settles a conflict has left behind of it; blocks.

    Raises :class:`Unsettled` for texts with markers in them, and second versions of files.
    """
    with workspace.store.locked() as contents:
        recorded = workspace.recorded(contents)
        roots = [recorded.named(each).root for each in (began, ended)]
        base, theirs = (_lasting(flat(contents.tree, root)) for root in roots)
        left = []
        for path in changed_paths(base, theirs):
            now = theirs.get(path)
            second = path not in base and ".phase-" in path.rpartition("/")[2]
            marked = now and now.kind == "file" and MARKER in contents.blob(now.content)
            if now and (second or marked):
                left.append(path)
    if left:
        raise Unsettled(f"the conflict is not settled in: {', '.join(left[:10])}")


def lay_out(worktree: Snapshots, here: str, began: str, ended: str, phase: str) -> None:
    """Bring conflicting work into the worktree in which it is settled, with markers; once.

    ``here`` is the snapshot that this worktree began with. Blocks.
    """
    label = f"{_MARKED}: {phase} from {here}"
    if any(each.label == label for each in worktree.kept()):
        return
    merge, _ = _merge(worktree, here, began, ended, phase)
    _apply(worktree, merge.goal, label)


def _merge(
    snapshots: Snapshots, mine: str, began: str, ended: str, phase: str | None
) -> tuple[Merge, tuple[str, ...]]:
    """Return the merge, its contents stored, and the paths that the work has changed."""
    with snapshots.store.locked() as contents:
        recorded = snapshots.recorded(contents)
        roots = [recorded.named(each).root for each in (began, mine, ended)]
        base, own, theirs = (_lasting(flat(contents.tree, root)) for root in roots)
        if phase is None:
            merge = merge_changes(base, own, theirs, contents.blob)
        else:
            merge = with_markers(base, own, theirs, contents.blob, phase)
        for data in merge.contents.values():
            contents.put_blob(data)
    return merge, tuple(changed_paths(base, theirs))


def _lasting(there: Flat) -> Flat:
    """Return a state without caches, which are remade and would conflict; repositories whole."""
    return {
        path: entry
        for path, entry in there.items()
        if ".git" in path.split("/") or is_lasting(path, directory=entry.kind == "directory")
    }


def _apply(snapshots: Snapshots, goal: Mapping[str, Entry | None], label: str) -> None:
    done = snapshots.apply(goal, label, by="work")
    if not done.exact:
        raise SnapshotUnavailable(f"{label}: these could not be written: {join_paths(done.left)}")


# --- Giving a member a worktree to work in, drawn from the state of the workspace at its start.


@dataclass(frozen=True)
class MemberWorktree:
    """A worktree; ``began`` is its first snapshot, ``note`` says what is missing in it."""

    folder: Path
    began: Snapshot
    snapshots: Snapshots
    note: str = ""


async def make_worktree(given: Assignment, context: "Context") -> MemberWorktree | None:
    """Make the worktree of a phase, or find it as it was left; None for a task without workspace.

    What is to be settled in it is laid out, once. Raises :class:`ToolError`, and what snapshots and
    worktrees raise.
    """
    workspace, phase = given.task.workspace, given.phase
    if workspace is None:
        return None
    snapshots = context.snapshots(workspace)
    if snapshots is None or given.snapshot is None:
        raise ToolError(
            f"phase {phase.id!r} has no worktree: a team works on snapshots of the workspace, and "
            "there is none (rollback.snapshots)"
        )
    folder = _folder(workspace, given.plan_id, phase.id, context)
    made = await make(Path(workspace), given.snapshot, folder, snapshots.materialise)
    own = Snapshots(folder, context.files_of, snapshots.store, exclude=snapshots.exclude)
    began = (await snapshot_before(own, f"the work on {phase.id} from {given.snapshot}")).snapshot
    if given.unmerged and phase.settles:
        await in_thread(lay_out, own, began.id, *given.unmerged, phase.settles)
    return MemberWorktree(folder, began, own, made.note)


async def clear_away(report: Report, task: Task | None, plan_id: str, context: "Context") -> str:
    """Remove the worktree of a phase whose work is merged: the snapshots hold what was in it.

    Where they lack what the work has made, it stays, and a note says so (PL-06). That of a phase
    that failed stays, to be looked at, until the phase is done again.
    """
    snapshots = context.snapshots(task.workspace if task else None)
    if task is None or task.workspace is None or snapshots is None:
        return ""
    folder = _folder(task.workspace, plan_id, report.phase.id, context)
    own = Snapshots(folder, context.files_of, snapshots.store)
    with suppress(WorktreeUnavailable, SnapshotUnavailable):  # then it stays
        began, ended = report.drawn_from, report.snapshot
        if began and ended and (left := await in_thread(own.unheld, began, ended)):
            _mark_of(folder).unlink(missing_ok=True)  # done again, the phase has a new one
            why = f"Not merged but kept in {folder}, as it is ignored or too large"
            return f"{why}: {join_paths(left)}"
        await remove_worktree(folder)
    return ""


def _folder(workspace: str, plan_id: str, phase_id: str, context: "Context") -> Path:
    return worktree_folder(Path(workspace), f"{context.files_of}\0{plan_id}", phase_id)
