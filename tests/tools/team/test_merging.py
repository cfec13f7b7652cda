"""A member's work comes into the workspace whole, or not at all; no line is lost on the way."""

import pytest
from tests.flats import FOLDER, Files, Kept, reached

from daruma.tools.snapshots.outcome import Entry
from daruma.tools.team.merging import Conflict, Merge, merged, with_markers

LINES = "".join(f"{number}\n" for number in range(1, 10))


def link(to: str) -> Entry:
    return Entry("link", 0o777, to)


def unread(size: str) -> Entry:
    return Entry("unread", 0o644, size)


SPECIAL = Entry("special", 0o644, "fifo")


def merge(base: Files, mine: Files, theirs: Files) -> tuple[Merge, dict[str, Entry], Kept]:
    kept = Kept()
    states = kept.states(base, mine, theirs)
    done = merged(*states, kept.read)
    return done, reached(states[1], done.goal), kept


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "expected"),
    [
        pytest.param({}, {}, {"a": "x"}, {"a": "x"}, id="added"),
        pytest.param({"a": "x"}, {"a": "x"}, {"a": "y"}, {"a": "y"}, id="changed"),
        pytest.param({"a": "x"}, {"a": "x"}, {}, {}, id="deleted"),
        pytest.param({"a": "x"}, {"a": "y"}, {"a": "x"}, {"a": "y"}, id="not changed"),
        pytest.param({"a": "x"}, {}, {"a": "x"}, {}, id="deleted meanwhile"),
        pytest.param({"a": "x"}, {"a": "y"}, {"a": "y"}, {"a": "y"}, id="both the same"),
        pytest.param({"a": "x"}, {}, {}, {}, id="both deleted"),
        pytest.param(
            {"a": LINES},
            {"a": f"0\n{LINES}"},
            {"a": f"{LINES}10\n"},
            {"a": f"0\n{LINES}10\n"},
            id="different lines",
        ),
        pytest.param(
            {"d/x": "x"}, {"d/x": "x", "d/y": "y"}, {}, {"d/y": "y"}, id="a folder still needed"
        ),
        pytest.param(
            {"d/x": "x"}, {}, {"d/x": "x", "d/z": "z"}, {"d/z": "z"}, id="a folder needed again"
        ),
        pytest.param({"d": "x"}, {"d": "x"}, {"d/y": "y"}, {"d/y": "y"}, id="to a folder"),
        pytest.param({"d/y": "y"}, {"d/y": "y"}, {"d": "x"}, {"d": "x"}, id="to a file"),
    ],
)  # fmt: skip
def test_work_that_does_not_meet_other_work_comes_in(
    base: Files, mine: Files, theirs: Files, expected: dict[str, str]
) -> None:
    """PL-06: what the other side did stays."""
    done, after, kept = merge(base, mine, theirs)

    assert done.conflicts == ()
    assert kept.texts(after, done) == expected


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "path", "why"),
    [
        pytest.param({"a": "x\n"}, {"a": "y\n"}, {"a": "z\n"}, "a", "the same lines", id="lines"),
        pytest.param({}, {"a": "y\n"}, {"a": "z\n"}, "a", "the same lines", id="added twice"),
        pytest.param({"a": b"\0"}, {"a": b"\1\0"}, {"a": b"\0\1"}, "a", "no text", id="binary"),
        pytest.param({"a": "x"}, {"a": "y"}, {}, "a", "the phase has deleted", id="deleted"),
        pytest.param({"a": "x"}, {}, {"a": "y"}, "a", "the workspace has deleted", id="gone"),
        pytest.param({"a": link("x")}, {"a": link("y")}, {"a": link("z")}, "a", "two", id="link"),
        pytest.param({"a": "x"}, {"a": link("y")}, {"a": "z"}, "a", "a link in", id="kinds"),
        pytest.param({}, {"d": "x"}, {"d/y": "y"}, "d", "a folder in the phase", id="both new"),
        pytest.param({"d/x": "x"}, {"d/x": "x", "d/y": "y"}, {"d": "z"}, "d", "a fo", id="file"),
        pytest.param({"d/x": "x"}, {"d": "z"}, {"d/x": "x", "d/y": "y"}, "d", "a fo", id="dir"),
        pytest.param({"a": "x"}, {"a": "x"}, {"a": unread("9")}, "a", "too large", id="too large"),
        pytest.param({"a": unread("9")}, {"a": unread("9")}, {"a": "x"}, "a", "large", id="over"),
        pytest.param({"a": "x"}, {"a": "x"}, {"a": SPECIAL}, "a", "a socket", id="special"),
    ],
)  # fmt: skip
def test_work_that_meets_other_work_stays_out_whole(
    base: Files, mine: Files, theirs: Files, path: str, why: str
) -> None:
    """PL-06: all conflicts are named, and nothing else of the work comes in either."""
    done, _, _ = merge(base, mine, {**theirs, "also": "new"})

    assert done.goal == {}
    assert done.contents == {}
    assert [each.path for each in done.conflicts] == [path]
    assert why in done.conflicts[0].why


def test_all_conflicts_are_named() -> None:
    """Sorted, each once."""
    done, _, _ = merge({}, {"b": "1", "a": "1", "c/d": "1"}, {"b": "2", "a": "2", "c/d": "2"})

    assert [each.path for each in done.conflicts] == ["a", "b", "c/d"]


def test_a_mode_and_a_content_are_merged() -> None:
    """One side made it a program, the other changed what it does."""
    kept = Kept()
    base, theirs = {"a": kept.file("x")}, {"a": kept.file("x", 0o755)}
    done = merged(base, {"a": kept.file("y")}, theirs, kept.read)

    assert done.goal == {"a": kept.file("y", 0o755)}


def test_two_modes_are_a_conflict() -> None:
    """Neither is the right one for sure."""
    kept = Kept()
    base, mine, theirs = ({"a": kept.file("x", mode)} for mode in (0o644, 0o600, 0o755))
    done = merged(base, mine, theirs, kept.read)

    assert done.conflicts == (
        Conflict("a", "two permissions: 600 in the workspace, 755 in the phase"),
    )


def test_what_never_came_into_the_worktree_is_not_deleted() -> None:
    """Files that are too large to be kept, and sockets."""
    there: Files = {"large": unread("9"), "socket": SPECIAL}
    done, _, _ = merge(there, there, {})

    assert done == Merge({})


def test_a_socket_that_the_work_left_behind_is_no_work() -> None:
    """It has no content that could be brought over."""
    done, _, _ = merge({}, {}, {"socket": SPECIAL, "a": "x"})

    assert list(done.goal) == ["a"]
    assert done.conflicts == ()


def settled(base: Files, mine: Files, theirs: Files, phase: str = "p1") -> dict[str, str]:
    kept = Kept()
    states = kept.states(base, mine, theirs)
    done = with_markers(*states, kept.read, phase)
    return kept.texts(reached(states[1], done.goal), done)


def test_lines_in_conflict_stand_between_markers() -> None:
    """The member's other changes are there, and the labels say whose is whose."""
    found = settled({"a": "x\n"}, {"a": "y\n", "m": "m"}, {"a": "z\n", "b": "b"})

    assert found == {
        "a": "<<<<<<< the workspace\ny\n=======\nz\n>>>>>>> phase p1\n",
        "b": "b",
        "m": "m",
    }


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "expected"),
    [
        pytest.param(
            {"a": "\0"}, {"a": "\0m"}, {"a": "\0t"}, {"a": "\0m", "a.phase-p1": "\0t"}, id="binary"
        ),
        pytest.param({"a": "x"}, {"a": "m"}, {}, {"a": "m"}, id="deleted"),
        pytest.param({"a": "x"}, {}, {"a": "t"}, {"a.phase-p1": "t"}, id="gone"),
        pytest.param(
            {"d/a": "x"}, {}, {"d/a": "t"}, {"d/a.phase-p1": "t"}, id="gone with its folder"
        ),
        pytest.param(
            {"d/x": "x"}, {"d": "m"}, {"d/x": "x", "d/y": "y"},
            {"d": "m", "d.phase-p1/x": "x", "d.phase-p1/y": "y"}, id="a folder",
        ),
        pytest.param(
            {"d/x": "x"}, {"d": "m"}, {"d/x": "t"}, {"d": "m", "d.phase-p1/x": "t"}, id="in it"
        ),
        pytest.param(
            {"d/x": "x"}, {"d/x": "x", "d/y": "y"}, {"d": "t"},
            {"d/x": "x", "d/y": "y", "d.phase-p1": "t"}, id="a file",
        ),
        pytest.param(
            {"a": "\0", "a.phase-p1": "1"}, {"a": "\0m", "a.phase-p1": "1"},
            {"a": "\0t", "a.phase-p1": "1"},
            {"a": "\0m", "a.phase-p1": "1", "a.phase-p1-2": "\0t"}, id="a name that is taken",
        ),
    ],
)  # fmt: skip
def test_of_other_conflicts_both_versions_are_there(
    base: Files, mine: Files, theirs: Files, expected: dict[str, str]
) -> None:
    """The workspace's under its name, the member's beside it."""
    assert settled(base, mine, theirs) == expected


def test_the_name_of_a_phase_leads_nowhere() -> None:
    """It becomes part of a file's name."""
    found = settled({}, {"a": "\0m"}, {"a": "\0t"}, phase="../../x y")

    assert set(found) == {"a", "a.phase-_x_y"}


def test_a_folder_with_two_modes_is_not_doubled() -> None:
    """What lies in it is merged as ever."""
    kept = Kept()
    states = kept.states({"d/x": "x"}, {"d/x": "x"}, {"d/x": "t"})
    for state, mode in zip(states, (0o755, 0o700, 0o750), strict=True):
        state["d"] = Entry("directory", mode, "")
    done = with_markers(*states, kept.read, "p1")

    assert [each.path for each in done.conflicts] == ["d"]
    assert kept.texts(reached(states[1], done.goal), done) == {"d/x": "t"}
    assert reached(states[1], done.goal)["d"].mode == 0o700


def test_without_conflicts_markers_are_none() -> None:
    """Then both ways lead to the same."""
    kept = Kept()
    states = kept.states({"a": LINES}, {"a": f"0\n{LINES}"}, {"a": f"{LINES}10\n", "b": "b"})

    assert with_markers(*states, kept.read, "p1") == merged(*states, kept.read)


def test_an_empty_folder_comes_in() -> None:
    """It is work too: a program may need it."""
    done = merged({}, {}, {"d": FOLDER}, Kept().read)

    assert done.goal == {"d": FOLDER}
