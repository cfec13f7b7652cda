"""A member's work comes into the workspace whole, or not at all; no line is lost on the way."""

import os
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flats import FOLDER, Files, Kept, reached
from tests.worktrees import git

from daruma.tools.snapshots import Entry, EntryKind, Restored, Snapshots, Store, store_of
from daruma.tools.team import worktree_folder
from daruma.tools.team._merging import (
    Merge,
    NotMerged,
    TextMerge,
    above,
    changed_paths,
    flat,
    is_text,
    merge_changes,
    merge_text,
    with_markers,
)
from daruma.tools.team._worktree import make

LINES = "".join(f"{number}\n" for number in range(1, 10))


def link(to: str) -> Entry:
    return Entry("link", 0o777, to)


def unread(size: str) -> Entry:
    return Entry("unread", 0o644, size)


SPECIAL = Entry("special", 0o644, "fifo")


def merge(base: Files, mine: Files, theirs: Files) -> tuple[Merge, dict[str, Entry], Kept]:
    kept = Kept()
    states = kept.states(base, mine, theirs)
    done = merge_changes(*states, kept.read)
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


def test_a_mode_and_a_content_are_merged() -> None:
    """One side made it a program, the other changed what it does."""
    kept = Kept()
    base, theirs = {"a": kept.file("x")}, {"a": kept.file("x", 0o755)}
    done = merge_changes(base, {"a": kept.file("y")}, theirs, kept.read)

    assert done.goal == {"a": kept.file("y", 0o755)}


def test_what_never_came_into_the_worktree_is_not_deleted() -> None:
    """Files that are too large to be kept, and sockets."""
    there: Files = {"large": unread("9"), "socket": SPECIAL}
    done, _, _ = merge(there, there, {})

    assert done == Merge({})


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


# --- From a worktree into the workspace: snapshots, a merge, and its goal applied, with real
# files.


@dataclass
class Member:
    """One that works in a worktree of its own, and whose work is brought in."""

    workspace: Path
    phase: str

    async def begin(self) -> Path:
        self.ours = Snapshots(self.workspace, "t", Store(store_of(self.workspace)))
        self.before = self.ours.take("before", by="work", fresh=True).snapshot
        folder = worktree_folder(self.workspace, "t", self.phase)
        tree = await make(self.workspace, self.before.id, folder, self.ours.materialise)
        own = Store(store_of(tree.folder))
        self.theirs = Snapshots(tree.folder, f"t/{self.phase}", own)
        self.base = self.theirs.take("base", by="work", fresh=True).snapshot
        assert own.path == self.ours.store.path
        return tree.folder

    def bring(self, *, markers: bool = False) -> tuple[Merge, Restored]:
        mine = self.ours.take("mine", by="work").snapshot.root
        theirs = self.theirs.take("theirs", by="work").snapshot.root
        with self.ours.store.locked() as contents:
            base, here, there = (flat(contents.tree, r) for r in (self.base.root, mine, theirs))
            if markers:
                done = with_markers(base, here, there, contents.blob, self.phase)
            else:
                done = merge_changes(base, here, there, contents.blob)
            for data in done.contents.values():
                contents.put_blob(data)
        return done, self.ours.apply(done.goal, "merge", by="work")


def files(top: Path) -> dict[str, str]:
    kept = (path for path in top.rglob("*") if ".git" not in path.parts and path.is_file())
    return {str(path.relative_to(top)): path.read_text() for path in kept}


async def test_the_work_of_two_members_comes_together(workspace: Path) -> None:
    """PL-06: new, changed and deleted files, a folder, a text that both have changed, a program."""
    text = "".join(f"{number}\n" for number in range(9))
    (workspace / "text").write_text(text)
    members = [Member(workspace, phase) for phase in ("p1", "p2")]
    one, two = [await each.begin() for each in members]
    (one / "text").write_text(f"one\n{text}")
    (one / "b.txt").unlink()
    (one / "deep" / "er").mkdir(parents=True)
    (one / "deep" / "er" / "x").write_text("x\n")
    (two / "text").write_text(f"{text}two\n")
    (two / "src" / "a.py").chmod(0o755)
    (two / "src" / "b.py").write_text("b\n")
    (workspace / "user.txt").write_text("the user's\n")
    before = files(workspace)
    done = [each.bring() for each in members]

    assert [merge.conflicts for merge, _ in done] == [(), ()]
    assert [restored.exact for _, restored in done] == [True, True]
    expected = before | {
        "text": f"one\n{text}two\n", "deep/er/x": "x\n", "src/b.py": "b\n"
    }  # fmt: skip
    del expected["b.txt"]
    assert files(workspace) == expected
    assert (workspace / "src" / "a.py").stat().st_mode & 0o777 == 0o755
    assert git(workspace, "diff", "--cached", "--name-only") == "staged.txt\n"


async def test_what_is_ignored_is_neither_brought_along_nor_missed(workspace: Path) -> None:
    """Also a file that is staged in spite of the rules, which a worktree's git does not know."""
    (workspace / ".gitignore").write_text("*.log\n.venv/\n")
    (workspace / ".venv").mkdir()
    for name in (".venv/x", "a.log", "forced.log"):
        (workspace / name).write_text("user\n")
    git(workspace, "add", "-f", "forced.log")
    member = Member(workspace, "p1")
    folder = await member.begin()
    (folder / "b.log").write_text("member\n")
    (folder / "new").write_text("new\n")
    before = files(workspace)
    done, restored = member.bring()

    assert not (folder / ".venv").exists()
    assert list(done.goal) == ["new"]
    assert restored.exact
    assert files(workspace) == before | {"new": "new\n"}


# --- A state of a workspace as one map, and what was changed in it.


def test_a_snapshot_becomes_one_map(tmp_path: Path) -> None:
    """Parents first, folders without content, no repository, not the workspace's own folder."""
    top = tmp_path / "w"
    (top / "d" / "e").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "d" / "x").write_text("x")
    (top / "d" / "l").symlink_to("x")
    os.mkfifo(top / "p")
    for path in (top / "d", top / "d" / "e"):
        path.chmod(0o755)
    snapshots = Snapshots(top, "t", Store(tmp_path / "store.sqlite3"))
    root = snapshots.take("x", by="work", fresh=True).snapshot.root
    with snapshots.store.locked() as contents:
        found = flat(contents.tree, root)

    assert list(found) == ["d", "p", "d/e", "d/l", "d/x"]
    assert found["d"] == found["d/e"] == FOLDER
    assert found["d/l"] == Entry("link", found["d/l"].mode, "x")
    assert found["p"].kind == "special"


@pytest.mark.parametrize(
    ("was", "now", "counts"),
    [
        (None, "file", True),
        ("file", None, True),
        ("file", "link", True),
        ("file", "file", False),
        ("unread", None, False),
        ("special", None, False),
        ("unread", "file", True),
        ("file", "special", True),
        (None, "special", False),
        (None, "unread", True),
    ],
)
def test_what_counts_as_changed(was: EntryKind | None, now: EntryKind | None, counts: bool) -> None:
    """What never came into a worktree is not deleted from it."""
    base, theirs = ({"a": Entry(k, 0, "")} if k else {} for k in (was, now))

    assert list(changed_paths(base, theirs)) == (["a"] if counts else [])


def test_the_folders_above_a_path() -> None:
    """The nearest first; the workspace is none of them."""
    assert above("a/b/c") == ["a/b", "a"]
    assert above("a") == []


# --- Texts are merged by git, without a repository and whatever its configuration.

BASE = b"1\n2\n3\n4\n5\n"


def test_different_lines_are_put_together() -> None:
    """With both sides' changes, to the byte: also without a newline at the end."""
    done = merge_text(BASE, b"0\n" + BASE, b"1\r\n".join([b"", BASE[2:]]) + b"6")

    assert merge_text(BASE, b"0\n" + BASE, BASE + b"6") == TextMerge(
        b"0\n" + BASE + b"6", clean=True
    )
    assert not done.clean


def test_lines_that_touch_are_in_conflict() -> None:
    """Each side is there whole, between markers with the labels, whatever these are."""
    done = merge_text(b"a\nb\n", b"a1\nb\n", b"a\nb2\n", ("-q", "phase --x"))

    assert done == TextMerge(b"<<<<<<< -q\na1\nb\n=======\na\nb2\n>>>>>>> phase --x\n", clean=False)


def test_many_conflicts_are_no_error() -> None:
    """Git says their number, up to 127, by its exit code."""
    lines = [b"".join(b"%d %d\n" % (number, at) for at in range(9)) for number in range(300)]
    mine, theirs = (b"".join(side + line for line in lines) for side in (b"m", b"t"))
    done = merge_text(b"".join(lines), mine, theirs)

    assert not done.clean
    assert done.text.count(b"<<<<<<<") == 300


def test_no_configuration_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's, nor that of a repository which this process's variables name."""
    (tmp_path / "config").write_text("[merge]\nconflictStyle = diff3\n[core\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    done = merge_text(b"x\n", b"y\n", b"z\n")

    assert b"|||||||" not in done.text
    assert b"<<<<<<<" in done.text


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", True), (b"\xff\xfe", True), (b"a\0", False), (b"a" * 8000 + b"\0", True)],
)
def test_a_zero_says_that_it_is_no_text(data: bytes, text: bool) -> None:
    """Looked for where git looks for it."""
    assert is_text(data) is text


def test_what_git_takes_for_no_text_is_not_merged() -> None:
    """Then it says so, and nothing is made up."""
    with pytest.raises(NotMerged, match="Cannot merge binary"):
        merge_text(b"\0", b"\0a", b"\0b")


# --- Merging in general: any order leads to one tree, and nothing that a side has written is
# lost.

PATHS = ("a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b")
BLOCKS = 3

Choice = dict[str, str]
BASE_MERGING_PROPERTIES: st.SearchStrategy[Choice] = st.fixed_dictionaries(
    {path: st.sampled_from(["absent", "base"]) for path in PATHS}
)
SIDE: st.SearchStrategy[Choice] = st.fixed_dictionaries(
    {path: st.sampled_from(["absent", "base", "base", "base", "changed"]) for path in PATHS}
)


def chosen(kept: Kept, base: Choice, side: Choice, who: str) -> dict[str, Entry]:
    """Return a state of one side; a line of its own stands in every file that it has changed."""
    files: dict[str, str] = {}
    for path in PATHS:
        what = base[path] if side[path] == "base" else side[path]
        if what != "absent" and not any(folder in files for folder in above(path)):
            own = f"{who}:{path}\n" if what == "changed" else ""
            files[path] = f"1\n2\n{own}{path}\n"
    return kept.flat(files)


def lines(kept: Kept, there: dict[str, Entry], who: str) -> set[str]:
    texts = (kept.blobs[each.content].decode() for each in there.values() if each.kind == "file")
    return {line for text in texts for line in text.splitlines() if line.startswith(who)}


@given(base=BASE_MERGING_PROPERTIES, side=SIDE)
def test_merging_with_an_unchanged_side_is_the_other(base: Choice, side: Choice) -> None:
    """Whatever the other has done, and whichever of the two it is."""
    kept = Kept()
    before, after = chosen(kept, base, base, "-"), chosen(kept, base, side, "s")

    assert reached(before, merge_changes(before, before, after, kept.read).goal) == after
    assert merge_changes(before, after, before, kept.read).goal == {}
    assert merge_changes(before, after, after, kept.read).goal == {}


@settings(max_examples=30, deadline=None)
@given(base=BASE_MERGING_PROPERTIES, mine=SIDE, theirs=SIDE)
def test_nothing_that_a_side_has_written_is_lost(
    base: Choice, mine: Choice, theirs: Choice
) -> None:
    """Every line is in the merged tree, or in the one in which conflicts are to be settled."""
    kept = Kept()
    before = chosen(kept, base, base, "-")
    ours, others = chosen(kept, base, mine, "m"), chosen(kept, base, theirs, "t")
    whole = merge_changes(before, ours, others, kept.read)
    done = with_markers(before, ours, others, kept.read, "p1") if whole.conflicts else whole
    found = kept.texts(reached(ours, done.goal), done)
    written = lines(kept, ours, "m") | lines(kept, others, "t")

    assert written <= {line for text in found.values() for line in text.splitlines()}
    assert whole.goal == {} if whole.conflicts else done.conflicts == ()


EDIT = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["add", "drop", "put"])), max_size=5)


def edited(text: list[str], edits: list[tuple[int, str]], who: str) -> list[str]:
    for number, (at, what) in enumerate(edits):
        place = min(at, len(text))
        new = [] if what == "drop" else [f"{who}{number}"]
        text = [*text[:place], *new, *text[place + (what != "add") :]]
    return text


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    base=st.lists(st.sampled_from("abc"), max_size=12), mine=EDIT, theirs=EDIT, end=st.booleans()
)
def test_no_line_is_lost_silently(
    base: list[str], mine: list[tuple[int, str]], theirs: list[tuple[int, str]], end: bool
) -> None:
    """Lines that both sides have added to one file, repeated ones around them."""
    kept = Kept()
    ours, others = edited(base, mine, "m"), edited(base, theirs, "t")
    texts = ["\n".join(side) + "\n" * end for side in (base, ours, others)]
    states = kept.states({"a": texts[0]}, {"a": texts[1]}, {"a": texts[2]})
    done = with_markers(*states, kept.read, "p1")
    (text,) = kept.texts(reached(states[1], done.goal), done).values()
    added = {line for line in ours + others if len(line) > 1}

    assert added <= set(text.splitlines())
    assert bool(done.conflicts) is bool(merge_changes(*states, kept.read).conflicts)


@dataclass(frozen=True)
class Part:
    """What one member does: in a folder of its own, in one that all share, in a text of all."""

    own: Choice
    adds: bool
    removes: bool
    rewrites: bool


PART = st.builds(Part, SIDE, st.booleans(), st.booleans(), st.booleans())


def worked(kept: Kept, base: Choice, did: list[Part], who: int | None) -> dict[str, Entry]:
    """Return the state in which one member has done its part; None for nobody."""
    files: dict[str, str | bytes | Entry] = {}
    blocks = []
    for number, part in enumerate(did):
        mine = number == who
        own = chosen(kept, base, part.own if mine else base, f"{number}")
        files |= {f"m{number}/{path}": entry for path, entry in own.items()}
        if mine and part.adds:
            files[f"shared/new{number}"] = "new"
        if not (mine and part.removes):
            files[f"shared/old{number}"] = "old"
        line = f"new {number}" if mine and part.rewrites else f"old {number}"
        blocks.append(f"begin {number}\n.{number}\n{line}\n,{number}\nend {number}\n")
    return kept.flat({**files, "text": "".join(blocks)})


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(base=BASE_MERGING_PROPERTIES, did=st.lists(PART, min_size=BLOCKS, max_size=BLOCKS))
def test_disjoint_work_merges_to_one_tree_in_any_order(base: Choice, did: list[Part]) -> None:
    """Files of one's own, files in a folder that all share, blocks of one text."""
    kept = Kept()
    before = worked(kept, base, did, None)
    works = [worked(kept, base, did, who) for who in range(BLOCKS)]
    results = []
    for order in permutations(works):
        there = before
        for theirs in order:
            done = merge_changes(before, there, theirs, kept.read)
            assert done.conflicts == ()
            kept.blobs |= done.contents
            there = reached(there, done.goal)
        results.append(there)

    assert all(each == results[0] for each in results)
    text = kept.blobs[results[0]["text"].content].decode()
    assert [f"new {n}" in text for n in range(BLOCKS)] == [part.rewrites for part in did]
