"""Random restores against an oracle, and proof that it sees what is wrong (RO-06)."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.snapshot_fuzz.reading import read
from tests.snapshot_fuzz.rounds import Make, in_memory, rounds

from daruma.tools.files import Parts
from daruma.tools.snapshots import ChangedBy, Entry, RestoreRefused, Snapshots, Store
from daruma.tools.snapshots._ignore import Rules
from daruma.tools.snapshots._restore import Applying
from daruma.tools.snapshots._store import Contents

Blur: TypeAlias = Callable[[Entry], Entry]

ROUNDS = 25


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in memory, with the data of the project in it."""
    with in_memory() as folder:
        monkeypatch.setenv("DARUMA_DATA_DIR", str(folder / "data"))
        yield folder


def test_random_restores_are_exact_or_say_what_is_not(place: Path) -> None:
    """Whatever the work and others do, nothing is wrong that is not named."""
    counted, faults = rounds(place, range(ROUNDS))

    assert faults == []
    assert counted["exact"] > ROUNDS / 2
    assert counted["needlessly declared"] == 0


class ForgetsModesOfDirectories(Applying):
    """A mutant."""

    def close(self, folder: int, path: Parts) -> None:
        """Leave directories as they are."""


class KeepsNewFilesFurtherDown(Applying):
    """A mutant."""

    def remove(self, folder: int, path: Parts) -> None:
        """Remove only what lies near the top."""
        if len(path) < 2:
            super().remove(folder, path)


class DeletesIgnoredFiles(Applying):
    """A mutant: what is ignored is looked at by no one, so only the oracle can tell."""

    def run(self) -> None:
        """Go the way, and remove what is ignored as well."""
        super().run()
        for at, _, files, folder in os.fwalk(".", dir_fd=self.top):
            above = Path(at).parts
            for name in files:
                if self.rules.outside((*above, name), directory=False):
                    os.unlink(name, dir_fd=folder)


class BlindSnapshots(Snapshots):
    """A mutant: what is alike to `blurred` is never seen to differ, neither before nor after."""

    def __init__(self, *given: Any, blurred: Blur, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.blurred = blurred

    def seen(self, contents: Contents, top: int, rules: Rules) -> tuple[str, list[str]]:
        """Keep what the workspace holds, less what can not be told apart."""
        root, unkept = super().seen(contents, top, rules)
        return self._blurred(contents, root), unkept

    def _blurred(self, contents: Contents, id_: str) -> str:
        tree = contents.tree(id_)
        for name, entry in tree.items():
            inside = entry.kind == "directory" and entry.content
            plain = replace(entry, content=self._blurred(contents, inside)) if inside else entry
            tree[name] = self.blurred(plain)
        return contents.put_tree(tree)


def by_length(entry: Entry) -> Entry:
    """Tell links apart by the length of their targets only."""
    return replace(entry, content="." * len(entry.content)) if entry.kind == "link" else entry


def without_modes(entry: Entry) -> Entry:
    """Tell directories apart by what is in them only."""
    return replace(entry, mode=0o755) if entry.kind == "directory" else entry


def broken_way(way: type[Applying]) -> Make:
    """Return snapshots that go a broken way."""
    return lambda workspace, thread, store: Snapshots(workspace, thread, store, way=way)


def blind(blurred: Blur) -> Make:
    """Return snapshots that do not see something."""
    return lambda workspace, thread, store: BlindSnapshots(
        workspace, thread, store, blurred=blurred
    )


MUTANTS = {
    "modes of directories forgotten": (broken_way(ForgetsModesOfDirectories), "without need"),
    "new files kept further down": (broken_way(KeepsNewFilesFurtherDown), "without need"),
    "ignored files deleted": (broken_way(DeletesIgnoredFiles), "damaged"),
    "links compared by length": (blind(by_length), "silently wrong"),
    "modes of directories not seen": (blind(without_modes), "silently wrong"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_short_form_finds_every_planted_mistake(mutant: str, place: Path) -> None:
    """The rounds of the suite are dense enough: they would have found each of these."""
    make, fault = MUTANTS[mutant]

    _, faults = rounds(place, range(ROUNDS), make, until=fault)

    assert any(fault in each for each in faults)


# --- What can not be told between snapshots whose ignore rules differ is left and named (RO-06).


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace whose rules ignore one file."""
    place = tmp_path / "work"
    place.mkdir()
    (place / ".gitignore").write_text("hidden\n")
    (place / "file").write_text("file\n")
    (place / "hidden").write_text("mine\n")
    return place


@pytest.fixture
def snapshots(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshots:
    """Its snapshots."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return Snapshots(work, "thread", Store(tmp_path / "store.sqlite3"))


@pytest.mark.parametrize(
    ("ignored", "name", "said"),
    [
        (
            "hidden\nfile\n",
            "file",
            "is ignored since the snapshot was taken, and was not looked at",
        ),
        ("", "hidden", ""),  # the older snapshot does not have it, and yet it was there
    ],
)
def test_what_one_of_two_tasks_ignores_is_not_touched_and_is_named(
    snapshots: Snapshots, work: Path, ignored: str, name: str, said: str
) -> None:
    """It was not looked at, so nobody may say that it is as it was."""
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / ".gitignore").write_text(ignored)
    snapshots.take("second task", by="others", fresh=True)
    (work / name).write_text("other\n")

    done = snapshots.restore(target, last="work")

    (left,) = done.left
    assert left.startswith(f"{name}: {said}")
    assert (work / name).read_text() == "other\n"


def test_what_was_ignored_and_nobody_has_changed_since_is_nothing_to_report(
    snapshots: Snapshots, work: Path
) -> None:
    """It lies outside of the older snapshot."""
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / ".gitignore").write_text("")
    snapshots.take("second task", by="others", fresh=True)
    (work / "file").unlink()

    done = snapshots.restore(target, last="work")

    assert (done.exact, done.paths, done.kept) == (True, ("file",), (".gitignore",))


def test_a_path_that_changed_kind_while_it_was_ignored_is_named(
    snapshots: Snapshots, work: Path
) -> None:
    """Directories were not ignored then, and files were: who made the file can not be told."""
    (work / ".gitignore").write_text("*\n!*/\n")
    (work / "d").mkdir()
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / "d").rmdir()
    (work / "d").write_text("a file now\n")
    (work / ".gitignore").write_text("")
    snapshots.take("second task", by="work", fresh=True)

    done = snapshots.restore(target)

    assert "d: changed while it was ignored, by whom is not known" in done.left
    assert (work / "d").read_text() == "a file now\n"


def test_a_directory_that_holds_ignored_files_keeps_its_mode(
    snapshots: Snapshots, work: Path
) -> None:
    """It is opened to remove what the work has made, and closed again, whatever was there once."""
    target = snapshots.take("task", by="others", fresh=True).snapshot.id
    (work / "file").unlink()
    (work / "file").mkdir()
    (work / "file" / "hidden").write_text("mine\n")
    (work / "file" / "made").write_text("made\n")
    (work / "file").chmod(0o555)
    before = read(work)

    done = snapshots.restore(target, last="work")

    assert (done.exact, done.paths) == (False, ("file/made",))
    assert read(work) == {path: each for path, each in before.items() if path != b"file/made"}


# --- Old snapshots go, but never what somebody still needs.


class Killed(BaseException):
    """Stands for the end of the process."""


class Dying(Applying):
    """A restore that ends before it has done anything."""

    def run(self) -> None:
        raise Killed


@pytest.fixture
def snapshots_pruning(tmp_path: Path) -> Snapshots:
    """Snapshots of a workspace with one file."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/file").write_text("0")
    return Snapshots(tmp_path / "work", "thread", Store(tmp_path / "kept/store.sqlite3"))


def taken(snapshots: Snapshots, content: str, *, at: float, by: ChangedBy) -> str:
    """Write the file and take a snapshot; return its id."""
    (snapshots.workspace / "file").write_text(content)
    snapshots.now = lambda: at
    return snapshots.take(content, by=by).snapshot.id


def test_who_changed_what_since_a_snapshot_that_stays_is_not_forgotten(
    snapshots_pruning: Snapshots,
) -> None:
    """Else somebody's change would pass for the work's, and be put back without a word."""
    first = taken(snapshots_pruning, "0", at=0, by="others")
    taken(snapshots_pruning, "a person's", at=10, by="others")
    taken(snapshots_pruning, "the work's", at=1000, by="work")

    snapshots_pruning.prune(older_than=500, keep=[first])

    with pytest.raises(RestoreRefused, match="file"):
        snapshots_pruning.restore(first)


def test_a_clock_that_went_back_does_not_make_holes(snapshots_pruning: Snapshots) -> None:
    """What was taken after one that stays does so too, whatever its time says."""
    taken(snapshots_pruning, "0", at=1000, by="others")
    taken(snapshots_pruning, "1", at=10, by="others")
    taken(snapshots_pruning, "2", at=1000, by="work")

    assert snapshots_pruning.prune(older_than=500) == 0


def test_other_threads_snapshots_do_not_hold_old_ones(snapshots_pruning: Snapshots) -> None:
    """Each thread has its own row of snapshots."""
    other = Snapshots(snapshots_pruning.workspace, "other", snapshots_pruning.store)
    first = taken(other, "0", at=0, by="others")
    old = taken(snapshots_pruning, "1", at=1, by="others")
    new = taken(snapshots_pruning, "2", at=1000, by="others")

    assert snapshots_pruning.prune(older_than=500, keep=[first]) == 1
    assert [each.id for each in other.kept()] == [first]
    assert old not in {each.id for each in snapshots_pruning.kept()}
    assert [each.id for each in snapshots_pruning.kept()] == [new]


def test_a_restore_that_was_cut_short_keeps_what_it_needs_and_no_more(
    snapshots_pruning: Snapshots,
) -> None:
    """Its workspace may never come back: all else is deleted in time all the same."""
    other = Snapshots(snapshots_pruning.workspace.parent, "other", snapshots_pruning.store)
    large = snapshots_pruning.workspace / "large"
    large.write_bytes(os.urandom(300_000))
    for number in range(3):
        other.take(f"{number}", by="others")
    large.unlink()
    first = taken(snapshots_pruning, "0", at=0, by="others")
    taken(snapshots_pruning, "1", at=1, by="work")
    snapshots_pruning.way = Dying
    with pytest.raises(Killed):
        snapshots_pruning.restore(first, last="work")
    with snapshots_pruning.store.locked() as contents:
        for table in ("blobs", "trees"):
            contents.database.execute(f"UPDATE {table} SET put_at = 0")  # noqa: S608 - constants
    other.now = lambda: 1e10

    gone = other.prune(older_than=1)

    snapshots_pruning.way = Applying
    restored = snapshots_pruning.recover()
    assert gone == 3
    assert restored
    assert restored.exact
    assert (snapshots_pruning.workspace / "file").read_text() == "0"


def test_contents_that_only_a_cut_short_restore_needs_stay(snapshots_pruning: Snapshots) -> None:
    """A merge puts contents that no snapshot holds yet."""
    taken(snapshots_pruning, "0", at=0, by="others")
    with snapshots_pruning.store.locked() as contents:
        digest = contents.put_blob(b"merged")
    snapshots_pruning.way = Dying
    with pytest.raises(Killed):
        snapshots_pruning.apply({"file": Entry("file", 0o644, digest)}, "merge", by="work")
    with snapshots_pruning.store.locked() as contents:
        contents.database.execute("UPDATE blobs SET put_at = 0")
    snapshots_pruning.now = lambda: 1e10

    gone = snapshots_pruning.prune(older_than=1)

    snapshots_pruning.way = Applying
    snapshots_pruning.recover()
    assert gone == 1
    assert (snapshots_pruning.workspace / "file").read_text() == "merged"
