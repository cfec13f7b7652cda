"""What putting back means, path by path, before anything is touched."""

from typing import TypeAlias

import pytest

from daruma.tools.files import Parts
from daruma.tools.snapshots import Entry
from daruma.tools.snapshots._restore_plan import FOREIGN, Changed, Plan, changed, planned

FOLDER = Entry("directory", 0o755, "")
OLD, NEW = Entry("file", 0o644, "old"), Entry("file", 0o644, "new")
UNREAD = Entry("unread", 0o644, "1")
PIPE = Entry("special", 0o644, "0o10000,0")
GIT = Entry("repository", 0, "")

Rows: TypeAlias = dict[str, tuple[Entry | None, Entry | None, str]]


def plan(rows: Rows, *, overwrite: bool = False) -> Plan:
    """Plan for paths given with what was there, what is there, and who has changed it."""
    table = {tuple(path.split("/")): row for path, row in rows.items()}
    who = Changed(
        frozenset(path for path, row in table.items() if "w" in row[2]),
        frozenset(path for path, row in table.items() if "o" in row[2]),
    )

    def then(path: Parts) -> Entry | None:
        return table[path][0] if path in table else None

    def now(path: Parts) -> Entry | None:
        return table[path][1] if path in table else None

    return planned(who, then, now, overwrite=overwrite, unknown={})


def told(found: Plan) -> dict[str, object]:
    """Return a plan with its paths as text."""
    return {
        "goal": {"/".join(path): entry for path, entry in found.goal.items()},
        "conflicts": sorted("/".join(path) for path in found.conflicts),
        "kept": sorted("/".join(path) for path in found.kept),
        "left": sorted("/".join(path) for path in found.left),
    }


def expected(
    goal: dict[str, Entry | None], conflicts: str = "", kept: str = "", left: str = ""
) -> dict[str, object]:
    """Return what `told` should say, with paths in one line."""
    return {
        "goal": goal,
        "conflicts": conflicts.split(),
        "kept": kept.split(),
        "left": left.split(),
    }


def test_an_undo_belongs_to_the_work() -> None:
    """So that what an undo has changed can be undone as well."""
    found = changed([("work", [("a",)]), ("others", [("b",)]), ("undo", [("c",)])])

    assert found == Changed(frozenset({("a",), ("c",)}), frozenset({("b",)}))


TABLE: dict[str, tuple[Rows, dict[str, object]]] = {
    "changed by the work": ({"a": (OLD, NEW, "w")}, expected({"a": OLD})),
    "made by the work": ({"a": (None, NEW, "w")}, expected({"a": None})),
    "changed by others": ({"a": (OLD, NEW, "o")}, expected({}, kept="a")),
    "changed by both": ({"a": (OLD, NEW, "wo")}, expected({}, "a", left="a")),
    "changed by both, and equal again": ({"a": (OLD, OLD, "wo")}, expected({})),
    "a file of others in a directory of the work's": (
        {"d": (None, FOLDER, "w"), "d/a": (None, NEW, "o"), "d/b": (None, NEW, "w")},
        expected({"d/b": None}, kept="d d/a"),
    ),
    "a file of others in a directory that was a file": (
        {"d": (OLD, FOLDER, "w"), "d/a": (None, NEW, "o")},
        expected({}, "d", kept="d/a", left="d"),
    ),
    "a file whose directory others have removed": (
        {"d": (FOLDER, None, "o"), "d/a": (OLD, None, "w"), "d/b": (OLD, None, "o")},
        expected({}, "d/a", kept="d d/b", left="d/a"),
    ),
    "a conflict two directories further down": (
        {"d": (None, FOLDER, "w"), "d/e": (None, FOLDER, "w"), "d/e/a": (None, NEW, "wo")},
        expected({}, "d/e/a", kept="d d/e", left="d/e/a"),
    ),
    "a repository": ({"d/.git": (GIT, None, "w")}, expected({}, left="d/.git")),
    "a pipe that is gone": ({"a": (PIPE, None, "w")}, expected({}, left="a")),
    "a pipe that is new": ({"a": (None, PIPE, "w")}, expected({"a": None})),
    "unread content that is gone": ({"a": (UNREAD, None, "w")}, expected({}, left="a")),
    "unread content that is new, and its directory": (
        {"d": (None, FOLDER, "w"), "d/a": (None, UNREAD, "w")},
        expected({}, left="d d/a"),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_is_put_back(case: str) -> None:
    """The work's changes are, others' are not, both is a conflict."""
    rows, want = TABLE[case]

    assert told(plan(rows)) == want
    if case == "changed by both":  # the reason stands beside the path
        assert plan(rows).left == {("a",): FOREIGN}


OVERWRITTEN: dict[str, tuple[Rows, dict[str, object]]] = {
    "changed by both": ({"a": (OLD, NEW, "wo")}, expected({"a": OLD}, "a")),
    "a file of others in a directory that was a file": (
        {"d": (OLD, FOLDER, "w"), "d/a": (None, NEW, "o")},
        expected({"d": OLD, "d/a": None}, "d/a"),
    ),
    "a file whose directory others have removed": (
        {"d": (FOLDER, None, "o"), "d/a": (OLD, None, "w"), "d/b": (OLD, None, "o")},
        expected({"d": FOLDER, "d/a": OLD}, "d", kept="d/b"),
    ),
    "what can not be made again": (
        {"d": (GIT, None, "wo")},
        expected({}, "d", left="d"),
    ),
}


@pytest.mark.parametrize("case", OVERWRITTEN)
def test_what_is_put_back_over_others(case: str) -> None:
    """No more of others' than the work's changes need."""
    rows, want = OVERWRITTEN[case]

    assert told(plan(rows, overwrite=True)) == want
