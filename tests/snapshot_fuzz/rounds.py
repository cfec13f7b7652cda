"""One round: a random workspace, random changes, a restore, and the judge."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeAlias

from tests.snapshot_fuzz.editing import Vandal
from tests.snapshot_fuzz.hidden import Hidden
from tests.snapshot_fuzz.judging import Judge, Seen, declared
from tests.snapshot_fuzz.reading import State, read

from daruma.tools.snapshots import ChangedBy, Conflicts, Restored, RestoreRefused, Snapshots, Store

Make: TypeAlias = Callable[[Path, str, Store], Snapshots]

WHO: list[ChangedBy] = ["work", "work", "others"]
HOW: list[Conflicts] = ["refuse", "keep", "overwrite"]


@dataclass
class Round:
    """A workspace in a folder of its own, and what was seen of it with each snapshot."""

    folder: Path
    random: Random
    make: Make
    counted: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    looks: list[tuple[str, Seen]] = field(default_factory=list)

    def run(self) -> None:
        """Make, vandalise, restore, judge."""
        clear(self.folder)
        self.workspace = self.folder / "workspace"
        self.workspace.mkdir(parents=True)
        self.snapshots = self.make(self.workspace, "thread", Store(self.folder / "store.sqlite3"))
        self.vandal = Vandal(self.workspace, self.random)
        self.vandal.grow()
        self._take("others", fresh=True)
        for _ in range(self.random.randrange(0, 4)):
            self.vandal.vandalise(self.random.randrange(0, 11))
            self._take(self.random.choice(WHO), fresh=self.random.random() < 0.08)
        self.vandal.vandalise(self.random.randrange(0, 11))
        self._restore()

    def _take(self, by: ChangedBy, *, fresh: bool) -> None:
        everything = read(self.workspace)
        if fresh:
            self.hidden = Hidden(self.workspace, everything, self.folder)
        taken = self.snapshots.take("a", by=by, fresh=fresh)
        self.looks.append((taken.snapshot.id, self._seen(by, everything)))

    def _seen(self, by: str, everything: State) -> Seen:
        return Seen(by, everything, self.hidden.visible(everything), self.hidden)

    def _restore(self) -> None:
        target = self.random.randrange(len(self.looks))
        how, last = self.random.choice(HOW), self.random.choice(WHO)
        everything = read(self.workspace)
        seen = [look for _, look in self.looks[target:]] + [self._seen(last, everything)]
        try:
            done = self.snapshots.restore(self.looks[target][0], last=last, conflicts=how)
        except RestoreRefused as error:
            self.counted["refused"] += 1
            self._refused(everything, Judge(seen, {}, how), error)
            return
        judge = Judge(seen, read(self.workspace), how)
        self._judge(judge, done)
        if not self.faults and self.random.random() < 0.4:
            self._redo(done, [*seen, self._seen("undo", judge.result)])

    def _refused(self, everything: State, judge: Judge, error: RestoreRefused) -> None:
        if read(self.workspace) != everything:
            self.faults.append("a refusal changed something")
        named = tuple(f"{each}: " for each in error.conflicts)
        missing = declared(sorted(judge.clashing() - judge.unable()), named)
        if missing:
            self.faults.append(f"a refusal does not name {missing}")

    def _redo(self, done: Restored, seen: list[Seen]) -> None:
        again = self.snapshots.restore(done.before)
        self._judge(
            Judge([*seen[-2:], Seen("others", *_rest(seen[-1]))], read(self.workspace), "refuse"),
            again,
        )

    def _judge(self, judge: Judge, done: Restored) -> None:
        wrong = judge.wrong()
        self.counted["exact" if done.exact else "declared"] += 1
        self.counted["needlessly declared"] += not done.exact and not wrong
        self.counted["silently wrong"] += done.exact and bool(wrong)
        said = f"; named {done.left}"
        found = {
            "exact, and something left" + said: done.left if done.exact else [],
            "silently wrong": wrong if done.exact else [],
            "wrong and not named" + said: declared(wrong, done.left),
            "left without need" + said: judge.unexcused(),
            "damaged": judge.damaged(),
        }
        self.faults += [f"{fault}: {paths}" for fault, paths in found.items() if paths]


def _rest(look: Seen) -> tuple[State, State, Hidden]:
    return look.everything, look.visible, look.hidden


def plain(workspace: Path, thread: str, store: Store) -> Snapshots:
    """Return the snapshots as everybody uses them."""
    return Snapshots(workspace, thread, store)


def clear(folder: Path) -> None:
    """Remove a folder, with all that is locked in it."""
    for at, _, _ in os.walk(folder):
        Path(at).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def in_memory() -> Iterator[Path]:
    """Make a folder in memory, where the system has one: rounds are bound by the disk's syncing."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a place, no name
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def rounds(
    folder: Path, seeds: range, make: Make = plain, *, until: str = ""
) -> tuple[Counter[str], list[str]]:
    """Run a round for every seed; return what came of them, and every fault with its seed."""
    counted: Counter[str] = Counter()
    faults: list[str] = []
    for seed in seeds:
        each = Round(folder / "round", Random(seed), make, counted)  # noqa: S311 - repeatable, not secret
        each.run()
        faults += [f"seed {seed}: {fault}" for fault in each.faults]
        if until and any(until in fault for fault in faults):
            break
    clear(folder / "round")
    return counted, faults
