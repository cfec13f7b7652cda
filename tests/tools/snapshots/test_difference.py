"""Directories are compared by their ids, and told as people look for them."""

from daruma.tools.snapshots.outcome import Change, Entry, Tree
from daruma.tools.snapshots.states import as_changes, differences

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
    """A directory on one side comes with all that lies in it, parents first."""
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


def test_equal_directories_are_not_read() -> None:
    """Nothing is asked for."""
    assert [*differences(TREES.__getitem__, "not there", "not there")] == []


def test_directories_are_told_where_nothing_else_tells_them() -> None:
    """An empty one, one whose mode changed; not one whose files are told."""
    assert as_changes(differences(TREES.__getitem__, "old", "new")) == (
        Change("bare", "added"),
        Change("gone/a", "deleted"),
        Change("sub", "changed"),
        Change("sub/a", "changed"),
    )


def test_a_directory_in_the_place_of_a_file_is_a_change() -> None:
    """And what lies in it is new."""
    assert as_changes(differences(TREES.__getitem__, "swapped", "new"))[2:] == (
        Change("sub", "changed"),
        Change("sub/a", "added"),
    )


def test_names_of_any_bytes_are_told_as_text() -> None:
    """What is no Unicode could not be stored or sent."""
    found = [(("d", "a\udcff"), None, FILE)]

    assert as_changes(found) == (Change("d/a\\udcff", "added"),)
