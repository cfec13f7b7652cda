"""Restores while somebody swaps directories for links that lead outside.

``python -m tests.snapshot_race [SECONDS]`` prints how many restores and swaps there were, and what
changed outside; it should be nothing.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.snapshot_fuzz.reading import State, read
from tests.snapshot_fuzz.rounds import in_memory

from daruma.tools.snapshots import Snapshots, SnapshotUnavailable, Store


@dataclass(frozen=True)
class Raced:
    """What a race came to."""

    restores: int
    swaps: int
    before: State
    after: State


def lay(folder: Path) -> tuple[Path, Path]:
    """Make a workspace with a directory, and the same directory outside of it, with other files."""
    work, outside = folder / "work", folder / "outside"
    for place, content in ((work / "d", "inside"), (outside, "outside")):
        (place / "deep").mkdir(parents=True)
        for name in ("kept", "changed", "deep/file"):
            (place / name).write_text(content)
    return work, outside


@contextmanager
def attacked(work: Path, outside: Path, swaps: list[int]) -> Iterator[None]:
    """Let a directory and a link that leads outside change places, again and again."""
    over = threading.Event()

    def swap() -> None:
        one, other, third = (work / name for name in ("d", "link", "third"))
        while not over.is_set():
            with suppress(OSError):  # a restore may have removed either of them
                one.mkdir()
            with suppress(OSError):
                third.rename(other)
            with suppress(OSError):
                other.symlink_to(outside)
            with suppress(OSError):
                one.rename(third)
                other.rename(one)
                third.rename(other)
                swaps[0] += 1

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        yield
    finally:
        over.set()
        attacker.join()


def race(folder: Path, goes_on: Callable[[int], bool]) -> Raced:
    """Restore again and again under attack, for as long as ``goes_on`` says, by the number done."""
    work, outside = lay(folder)
    before = read(outside)
    snapshots = Snapshots(work, "thread", Store(folder / "store.sqlite3"))
    target = snapshots.take("start", by="others", fresh=True).snapshot.id
    swaps, number = [0], 0
    with attacked(work, outside, swaps):
        while goes_on(number):
            for place in ("d", "link", "third"):
                vandalise(work / place)
            with suppress(SnapshotUnavailable):
                snapshots.restore(target, last="work", conflicts="overwrite")
            number += 1
    return Raced(number, swaps[0], before, read(outside))


def vandalise(place: Path) -> None:
    """Change, delete and make files in a directory; never by way of the link."""
    with suppress(OSError):
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.close(os.open("new", flags, 0o600, dir_fd=folder))
            os.close(os.open("changed", flags, 0o600, dir_fd=folder))
            os.unlink("kept", dir_fd=folder)
            os.fchmod(folder, 0o700)
        finally:
            os.close(folder)


def main(seconds: float) -> int:
    """Race for so many seconds, and print what came of it."""
    end = time.monotonic() + seconds
    with in_memory() as folder:
        os.environ["DARUMA_DATA_DIR"] = str(folder / "data")
        raced = race(folder, lambda _: time.monotonic() < end)
    changed = {path for path, thing in raced.before.items() ^ raced.after.items() if thing}
    print(f"restores {raced.restores}, swaps {raced.swaps}, changed outside {sorted(changed)}")  # noqa: T201
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5))
