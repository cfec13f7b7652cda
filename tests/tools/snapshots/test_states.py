"""Kept states: looked up, compared, mixed, read again in part, written into a folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from daruma.tools.snapshots import Change, Entry, Snapshots, SnapshotUnavailable, Store, Tree
from daruma.tools.snapshots._states import LARGEST, Look, as_changes, differences, replaced

# --- Directories are compared by their ids, and told as people look for them.

FILE = Entry("file", 0o644, "1")
OTHER = Entry("file", 0o644, "2")


def directory(id_: str, mode: int = 0o755) -> Entry:
    return Entry("directory", mode, id_)


TREES: dict[str, Tree] = {
    "empty": {},
    "one": {"a": FILE},
    "two": {"a": OTHER},
    "old": {"same": directory("one"), "sub": directory("one"), "gone": directory("one")},
    "new": {"same": directory("one"), "sub": directory("two", 0o700), "bare": directory("empty")},
    "swapped": {"sub": FILE},
}


def test_only_what_differs_is_looked_at() -> None:
    """A directory on one side comes with all that lies in it, parents first.

    Told is a directory where nothing else tells it: an empty one, or one whose mode changed.
    """
    asked: list[str] = []

    def tree(id_: str) -> Tree:
        asked.append(id_)
        return TREES[id_]

    found = [*differences(tree, "old", "new")]

    assert found == [
        (("bare",), None, directory("empty")),
        (("gone",), directory("one"), None),
        (("sub",), directory("one"), directory("two", 0o700)),
        (("sub", "a"), FILE, OTHER),
        (("gone", "a"), FILE, None),
    ]
    assert len(asked) == 6
    assert [*differences(TREES.__getitem__, "not there", "not there")] == []
    assert as_changes(found) == (
        Change("bare", "added"),
        Change("gone/a", "deleted"),
        Change("sub", "changed"),
        Change("sub/a", "changed"),
    )


def test_a_change_of_kind_and_names_of_any_bytes_are_told() -> None:
    """What lies in a directory that was a file is new; what is no Unicode could not be stored."""
    odd = [(("d", "a\udcff"), None, FILE)]

    assert as_changes(differences(TREES.__getitem__, "swapped", "new"))[2:] == (
        Change("sub", "changed"),
        Change("sub/a", "added"),
    )
    assert as_changes(odd) == (Change("d/a\\udcff", "added"),)


# --- What an editor has changed is found by whatever name it was told.

DEEP = 1100


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a file that has many names."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub/file").write_text("before")
    (work / "linked").symlink_to("sub")
    (work / "link").symlink_to("sub/file")
    (tmp_path / "elsewhere").symlink_to(work)
    return work


@pytest.fixture
def snapshots(work: Path, tmp_path: Path) -> Snapshots:
    """Snapshots of it, one of them taken."""
    snapshots = Snapshots(work, "thread", Store(tmp_path / "kept/store.sqlite3"))
    snapshots.take("first", by="others", fresh=True)
    return snapshots


NAMES: list[Callable[[Path], str]] = [
    lambda _: "sub/file",
    lambda _: "./sub//file",
    lambda _: "linked/file",
    lambda _: "link",
    lambda work: f"{work}/sub/file",
    lambda work: f"{work}/linked/file",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", ["work", "elsewhere"])
def test_an_edit_is_noted_by_any_name(
    name: Callable[[Path], str], at: str, work: Path, snapshots: Snapshots
) -> None:
    """Absolute ones and links, as the editor takes them; the workspace's own may be one, too."""
    here = Snapshots(work.parent / at, "thread", snapshots.store)
    (work / "sub/file").write_text("after")

    here.note([name(here.workspace)], "edit")

    last = snapshots.kept()[-1]
    assert (last.label, last.by) == ("edit", "work")
    assert snapshots.changes(last.id) == ()


@pytest.mark.parametrize(
    "name", ["", "a\0b", "sub/../sub/file", "..", "/etc/passwd", "\udc80", "out"]
)
def test_a_path_that_no_editor_may_use_notes_nothing(
    name: str, work: Path, snapshots: Snapshots
) -> None:
    """It is refused in one line, and the work that was begun stays open."""
    (work / "out").symlink_to("/etc/passwd")
    snapshots.open("edit")

    with pytest.raises(SnapshotUnavailable):
        snapshots.note([name], "edit")

    assert snapshots.kept()[-1].opens


def test_a_path_deeper_than_calls_may_go_is_replaced(tmp_path: Path) -> None:
    """Directories may lie deeper than Python's calls."""
    path = ("d",) * DEEP
    file = Entry("file", 0o644, "content")

    with Store(tmp_path / "store.sqlite3").locked() as contents:
        empty = contents.put_tree({})
        found = [*[Entry("directory", 0o755, "")] * (DEEP - 1), file]
        root = replaced(contents, empty, path, [*found])

        assert Look(contents.tree, root)(path) == file
        assert replaced(contents, root, path, [*found[:-1], None]) != root


def test_what_was_not_kept_stays_known_while_edits_are_noted(
    work: Path, snapshots: Snapshots
) -> None:
    """An edit does not look at the large file again, and does not forget it either.

    A label of any text is kept, also of one that is no Unicode, as a model may name a path.
    """
    with (work / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    snapshots.take("large", by="others")

    snapshots.open("edit")
    (work / "sub/file").write_text("after")
    snapshots.note(["sub/file"], "edit")

    assert [each.unkept for each in snapshots.kept()[-2:]] == [("large",)] * 2
    snapshots.open("edit of \udc80")
    assert snapshots.kept()[-1].label == "edit of \\udc80"
