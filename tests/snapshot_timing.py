"""Times snapshots beside ``git stash`` on the same tree: ``python -m tests.snapshot_timing``.

Each round works on fresh copies of one repository of 10,000 files, 500 of which are changed,
deleted or untracked. What is ours is timed inside of a new process, without its start; git with
its own, which is a few milliseconds.
"""

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.git_ground import git, repository

from daruma.tools.snapshots import Snapshots, Store

FILES = 10_000
TOUCHED = 500
ROUNDS = 5
SETTLED = 2.1
"""Seconds after which a file's times tell whether it has changed."""

PAIRS = {
    "first time": ("take, new store", "stash -u"),
    "again": ("take, new process", "stash -u again"),
    "put back": ("restore of 500", "stash pop"),
}

TAKES = [mine for mine, _ in PAIRS.values() if mine.startswith("take")]


def fill(work: Path) -> None:
    """Write files as a repository of code has them: most are small, a few are large."""
    chance = random.Random(1)  # noqa: S311 - repeatable, not secret
    words = [
        "".join(chance.choices("etaoinshr_ (){}=", k=chance.randint(3, 9))) for _ in range(3000)
    ]
    for number in range(FILES):
        size = min(int(chance.lognormvariate(7.9, 1.3)), 400_000)
        path = work / f"part{number % 40}" / f"sub{number // 40 % 25}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(chance.choices(words, k=size // 7 + 1))[:size])
    (work / ".gitignore").write_text("*.pyc\n__pycache__/\n.venv\n/build\n*.log\nnode_modules/\n")


def touch(work: Path) -> None:
    """Change, delete and add files, as work does."""
    files = sorted(work.glob("part*/*/*.py"))
    for number, path in enumerate(files[:: len(files) // TOUCHED][:TOUCHED]):
        if number % 10 < 6:
            path.write_text(path.read_text() + "\nchanged\n")
        elif number % 10 < 7:
            path.unlink()
        else:
            path.with_suffix(".new").write_text(path.read_text()[::-1])


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_new_process(what: str, *arguments: Path | str) -> float:
    """Return the seconds that this module's ``what`` takes in a process of its own."""
    command = [sys.executable, "-m", "tests.snapshot_timing", what, *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def take(work: str, store: str) -> float:
    """Take a snapshot."""
    snapshots = Snapshots(Path(work), "timing", Store(Path(store)))
    return timed(lambda: snapshots.take("timed", by="work"))


def restore(work: str, store: str) -> float:
    """Put back what the work has changed since the first snapshot."""
    snapshots = Snapshots(Path(work), "timing", Store(Path(store)))
    first = snapshots.kept()[0].id
    return timed(lambda: snapshots.restore(first, last="work"))


def ours(work: Path, store: Path) -> dict[str, float]:
    """Time our side of one round."""
    found = {name: in_new_process("take", work, store) for name in TAKES}
    spoil(work)
    return found | {"restore of 500": in_new_process("restore", work, store)}


def spoil(work: Path) -> None:
    """Change and delete files that `touch` has not, and add some, as the next work does."""
    files = sorted(work.glob("part*/*/*.py"))
    for number, path in enumerate(files[7 :: len(files) // TOUCHED][:TOUCHED]):
        if number % 10 < 6:
            path.write_text(path.read_text() + "\nspoiled\n")
        elif number % 10 < 7:
            path.unlink()
        else:
            path.with_suffix(".more").write_text(path.read_text()[::-1])


def theirs(work: Path) -> dict[str, float]:
    """Time git's side of one round."""
    found = {}
    found["stash -u"] = timed(lambda: git(work, "stash", "push", "-q", "-u"))
    found["stash pop"] = timed(lambda: git(work, "stash", "pop", "-q"))
    found["stash -u again"] = timed(lambda: git(work, "stash", "push", "-q", "-u"))
    return found


def one_round(original: Path, at: Path) -> dict[str, float]:
    """Time both sides, each on a copy of its own."""
    for name in ("ours", "theirs"):
        shutil.copytree(original, at / name, symlinks=True)
        git(at / name, "update-index", "-q", "--refresh")  # its index names the original's inodes
        touch(at / name)
    time.sleep(SETTLED)
    found = ours(at / "ours", at / "store" / "store.sqlite3") | theirs(at / "theirs")
    for name in ("ours", "theirs", "store"):
        shutil.rmtree(at / name)
    return found


def main() -> None:
    """Print the medians of all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        original = Path(folder, "original")
        original.mkdir()
        fill(original)
        repository(original)
        rounds = [one_round(original, Path(folder)) for _ in range(ROUNDS)]
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    print(f"{'':12}{'ours':>28}{'git':>28}{'ratio':>8}")  # noqa: T201
    for what, (mine, git_s) in PAIRS.items():
        ratio = medians[mine] / medians[git_s]
        left, right = f"{mine} {medians[mine]:.2f} s", f"{git_s} {medians[git_s]:.2f} s"
        print(f"{what:12}{left:>28}{right:>28}{ratio:>8.2f}")  # noqa: T201


if __name__ == "__main__":
    if sys.argv[1:2] in (["take"], ["restore"]):
        print({"take": take, "restore": restore}[sys.argv[1]](*sys.argv[2:]))  # noqa: T201
    else:
        main()
