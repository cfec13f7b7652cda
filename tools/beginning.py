"""How the workspace was at the task's beginning, laid out where checks can be run on it."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from daruma.state.channels import State
from daruma.tools.checks import RUNS_TESTS, about_tests, is_test_file, read_text, says_how
from daruma.tools.context import Context
from daruma.tools.files import is_lasting
from daruma.tools.snapshots import Change, Snapshot, Snapshots, SnapshotUnavailable
from daruma.tools.threads import in_thread


@dataclass
class Beginning:
    """The snapshot of the task's beginning; ``changes`` are what differs now.

    ``at`` is when that was, Unix time; ``missing`` says why there is none. Its files are written
    when they are asked for, and removed when ``stack`` is closed.
    """

    snapshots: Snapshots | None = None
    snapshot: str = ""
    changes: tuple[Change, ...] = ()
    missing: str = ""
    at: float = 0.0
    stack: ExitStack = field(default_factory=ExitStack)
    _folder: Path | None = None

    def folder(self, beside: Path) -> Path:
        """Return the folder with its files. Blocks; raises SnapshotUnavailable and OSError."""
        if self._folder is None and self.snapshots:
            top = Path(tempfile.mkdtemp(prefix="daruma-beginning-")).resolve()
            self.stack.callback(shutil.rmtree, top, ignore_errors=True)
            folder = _surrounded(self.snapshots.workspace, top)
            self.snapshots.stand_in(self.snapshot, folder, beside)
            self._folder = folder
        if self._folder is None:
            raise SnapshotUnavailable(self.missing)
        return self._folder

    def changed_tests(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the test files that differ, and what says how tests are run (VE-08). Blocks."""
        files = frozenset(known)
        told = (
            each.path
            for each in self.changes
            if is_test_file(each.path, files) or (says_how(each.path) and self._says_else(each))
        )
        return (*told, *self._unseen())

    def _unseen(self) -> Iterator[str]:
        """Yield what is newer than the task and in no snapshot: it is told, not judged."""
        if (snapshots := self.snapshots) is None or not self.at:
            return
        known = {each.path for each in self.changes}
        for path in RUNS_TESTS:
            with suppress(OSError):
                newer = (snapshots.workspace / path).lstat().st_ctime > self.at
                if newer and path not in known and snapshots.text(self.snapshot, path) is None:
                    yield path

    def _says_else(self, change: Change) -> bool:
        if self.snapshots is None or change.what != "changed":
            return True
        now = read_text(self.snapshots.workspace / change.path)
        before = self.snapshots.text(self.snapshot, change.path) or ""
        return about_tests(change.path, before) != about_tests(change.path, now)


def _surrounded(workspace: Path, top: Path) -> Path:
    """Return where a workspace may be laid out below ``top``.

    Where files above it configure tests, it lies as deep as below the highest of them, and around
    it are links to what lies around it: by those a sandbox opens no more than by their targets.
    """
    above = [
        folder
        for folder in workspace.parents[:-1]
        if any((folder / name).is_file() for name in RUNS_TESTS if "/" not in name)
    ]
    if not above:
        return top / workspace.name
    place = top / above[-1].name
    for name in workspace.relative_to(source := above[-1]).parts:
        place.mkdir()
        with suppress(OSError):
            for each in source.iterdir():
                if each.name != name:
                    (place / each.name).symlink_to(each)
        place, source = place / name, source / name
    return place


NO_SNAPSHOT: Final = "there is no snapshot of the task's beginning"


async def beginning_of(
    state: State, context: Context, now: Snapshot | None, stack: ExitStack
) -> Beginning:
    task = state.task
    snapshots = context.snapshots(task.workspace if task else None)
    begun = (
        each
        for each in state.savepoints
        if task and each.task_id == task.id and each.workspace == task.workspace
    )
    start = next(begun, None)
    if snapshots is None:
        return Beginning(missing="rollback.snapshots is off")
    if now is None or start is None or start.snapshot is None:
        return Beginning(missing="none was taken")
    try:
        changes = await in_thread(snapshots.changes, start.snapshot, now.id)
    except SnapshotUnavailable as error:
        return Beginning(missing=str(error))
    told = tuple(each for each in changes if is_lasting(each.path))
    at = task.started_at if task else 0.0
    return Beginning(snapshots, start.snapshot, told, at=at, stack=stack)
