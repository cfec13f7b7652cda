"""Restores that are killed at every single step, and what recovery makes of them.

``python -m tests.snapshot_crash FOLDER [EVERY]`` prints a JSON line for every step (or some, with
the first and the last): a child that puts a workspace back is ended there by ``os._exit``; then
(``twice``) another one is ended at some step of its recovery, or (``edited``) a person edits two
files; then this process recovers. At last others come next than a recovery. See
tests/tools/snapshots/test_crash_in_restore.py.
"""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.snapshot_fuzz.reading import State, read

from daruma.tools.snapshots import Snapshots, Store

DEAD = 9
EDITS = {b"changed": b"a person's\n", b"untouched": b"a person's too\n"}


class Deadly:
    """Ends the process at one of its calls; counts them."""

    def __init__(self, point: int) -> None:
        self.point = point
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self.point:
            os._exit(DEAD)


def lay(work: Path) -> None:
    """Make what a task finds."""
    for folder in ("folder/deep", "locked", "to-file", "gone/empty"):
        (work / folder).mkdir(parents=True)
    for name in ("changed", "untouched", "mode", "deleted", "to-folder", "folder/deep/same"):
        (work / name).write_text(f"{name}\n")
    (work / "locked/inside").write_text("inside\n")
    (work / "to-file/child").write_text("child\n")
    (work / "link").symlink_to("changed")
    (work / "to-link").symlink_to("folder")
    (work / "gone/empty").chmod(0o711)
    (work / "locked").chmod(0o555)


def vandalise(work: Path) -> None:
    """Do everything that work can do to it."""
    (work / "changed").write_text("changes\n")
    (work / "mode").chmod(0o4711)
    (work / "deleted").unlink()
    (work / "new/nested/deep").mkdir(parents=True)
    (work / "new/nested/deep/file").write_text("new\n")
    (work / "new/nested").chmod(0o500)
    (work / "link").unlink()
    (work / "link").symlink_to("chanced")
    (work / "to-link").unlink()
    (work / "to-link").mkdir()
    (work / "to-link/made").write_text("made\n")
    (work / "to-folder").unlink()
    (work / "to-folder").mkdir(0o700)
    (work / "to-file/child").unlink()
    (work / "to-file").rmdir()
    (work / "to-file").write_text("a file\n")
    shutil.rmtree(work / "gone")
    os.mkfifo(work / "pipe")
    (work / "locked").chmod(0o755)
    (work / "locked/inside").write_text("outside\n")
    (work / "locked").chmod(0o500)
    work.chmod(0o750)


class Scene:
    """A vandalised workspace and its store, laid anew for every death."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(mode=0o755)
        lay(self.work)
        self.goal = read(self.work)
        self.target = self.open().take("start", by="others", fresh=True).snapshot.id
        vandalise(self.work)
        self.before = read(self.work)
        source, first = (sqlite3.connect(folder / f"{name}.sqlite3") for name in ("store", "first"))
        with closing(source), closing(first):
            source.backup(first)

    def open(self, step: Callable[[], None] = lambda: None) -> Snapshots:
        """Return the snapshots, with something to do between their steps."""
        return Snapshots(self.work, "thread", Store(self.folder / "store.sqlite3"), step=step)

    def again(self) -> None:
        """Lay it as it was before the restore."""
        for at, _, _ in os.walk(self.work):
            Path(at).chmod(0o700)
        shutil.rmtree(self.work)
        self.work.mkdir()
        lay(self.work)
        vandalise(self.work)
        for kind in ("", "-wal", "-shm"):
            (self.folder / f"store.sqlite3{kind}").unlink(missing_ok=True)
        shutil.copy(self.folder / "first.sqlite3", self.folder / "store.sqlite3")

    def steps(self) -> int:
        """Return how many steps a restore has that nobody ends."""
        self.again()
        counting = Deadly(-1)
        self.open(counting).restore(self.target, last="work")
        return counting.calls

    def dies(self, point: int, *, recovering: bool = False) -> bool:
        """Restore, or recover, in a child that ends at a step; say whether it came to that."""
        child = os.fork()
        if child == 0:
            snapshots = self.open(Deadly(point))
            if recovering:
                snapshots.recover()
            else:
                snapshots.restore(self.target, last="work")
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == DEAD

    def recovered(self) -> dict[str, Any]:
        """Recover, and say what came of it."""
        done = self.open().recover()
        state = read(self.work)
        told = {"exact": done.exact, "left": done.left, "before": done.before} if done else {}
        return {"recovered": done is not None, **told, "state": self.named(state)}

    def named(self, state: State) -> str:
        """Say which of the known states this is."""
        return "goal" if state == self.goal else "before" if state == self.before else "other"

    def redone(self, told: dict[str, Any]) -> bool:
        """Go back to before the restore, and say whether all but the pipe is as it was."""
        done = self.open().restore(told["before"])
        state = {path: thing for path, thing in self.before.items() if path != b"pipe"}
        return len(done.left) == 1 and read(self.work) == state


def once(scene: Scene, point: int) -> dict[str, Any]:
    """One death."""
    died = scene.dies(point)
    told = scene.recovered()
    again = scene.redone(told) if told["recovered"] else True
    return {"died": died, **told, "redone": again}


def twice(scene: Scene, point: int) -> dict[str, Any]:
    """A second death during recovery, at a step that wanders through all of them."""
    died = scene.dies(point)
    again = scene.dies(point * 7 % 23 + 1, recovering=True)
    return {"died": died, "again": again, **scene.recovered()}


def edited(scene: Scene, point: int) -> dict[str, Any]:
    """A person edits two files between the death and the recovery."""
    died = scene.dies(point)
    for name, content in EDITS.items():
        (scene.work / os.fsdecode(name)).write_bytes(content)
    told = scene.recovered()
    kept = all((scene.work / os.fsdecode(n)).read_bytes() == c for n, c in EDITS.items())
    return {"died": died, **told, "edits": kept}


def main(folder: Path, every: int) -> None:
    """Die at every so many steps, in each way, and print what came of it."""
    scene = Scene(folder)
    for way in (once, twice, edited):
        last = scene.steps()
        for point in sorted({*range(1, last, every), last}):
            scene.again()
            told = {"way": way.__name__, "point": point, **way(scene, point)}
            print(json.dumps(told), flush=True)  # noqa: T201 - for the test
    for following in ("take", "note", "restore"):
        scene.again()
        died = scene.dies(30)
        snapshots = scene.open()
        if following == "take":
            snapshots.take("next", by="work")
        elif following == "note":
            snapshots.note(["changed"], "next")
        else:
            snapshots.restore(scene.target)
        told = {"way": following, "died": died, "state": scene.named(read(scene.work))}
        print(json.dumps(told | {"open": snapshots.recover() is not None}))  # noqa: T201 - too


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
