"""A digest of a folder's content: what was approved is void once anything in it has changed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daruma.tools.errors import FileUnavailable
from daruma.tools.files import (
    SETTLED,
    Parts,
    Tree,
    changes_between,
    list_tree,
    tree_of,
)
from daruma.tools.files._beneath import WalkingOpener
from daruma.tools.files._tree import LARGEST, MOST_ENTRIES, FileHashes


def tree_id(root: Path, **how: Any) -> str:
    return tree_of(root, **how).id


# --- Hashes are remembered for files that have not changed, and only for so many.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("text")
    return path


def settled(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_ctime_ns) + SETTLED


def test_a_hash_is_known_until_the_file_changes(file: Path) -> None:
    """Size, times, inode and path must all be the same.

    One that was just changed could change again without its times telling, as git knows too; and
    a memory that only grows would be a leak.
    """
    hashes, few, status = FileHashes(), FileHashes(most=2), file.stat()
    hashes.keep(b"file", status, b"hash", settled(status) - 1)
    assert hashes.known(b"file", status) is None
    hashes.keep(b"file", status, b"hash", settled(status))
    for path in (b"1", b"2", b"3"):
        few.keep(path, status, path, settled(status))

    assert [few.known(path, status) for path in (b"1", b"2", b"3")] == [None, b"2", b"3"]
    assert hashes.known(b"file", file.stat()) == b"hash"
    assert hashes.known(b"other", file.stat()) is None
    os.utime(file, (1, 1))
    assert hashes.known(b"file", file.stat()) is None


# --- A tree's id changes with all that a tree says, and with nothing else.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository with one of everything."""
    top = tmp_path / "tree"
    for name in ("a.py", "src/b.sh", "ignored/c", ".git/hooks/pre-push", ".git/config", ".git/HEAD",
                 "node_modules/x/index.js", "src/__pycache__/b.cpython-311.pyc"):  # fmt: skip
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    (top / ".gitignore").write_text("ignored\n")
    (top / "link").symlink_to("a.py")
    os.mkfifo(top / "pipe")
    (top / os.fsdecode(b"\xff\xfe")).write_bytes(b"\0")
    return top


def touch(path: Path, text: str = "other") -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_text(text)


def relink(top: Path) -> None:
    (top / "link").unlink()
    (top / "link").symlink_to("b.py")


def into_link(top: Path) -> None:
    (top / "a.py").rename(top.parent / "a.py")
    (top / "a.py").symlink_to("../a.py")


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit": lambda top: touch(top / "a.py", "A.py"),
    "an edit of what is ignored": lambda top: touch(top / "ignored/c"),
    "an edit under an odd name": lambda top: (top / os.fsdecode(b"\xff\xfe")).write_bytes(b"\1"),
    "a new file": lambda top: touch(top / "new", ""),
    "a new folder": lambda top: (top / "new").mkdir(),
    "a deletion": lambda top: (top / "a.py").unlink(),
    "a renaming": lambda top: (top / "a.py").rename(top / "b.py"),
    "a move": lambda top: (top / "a.py").rename(top / "src/a.py"),
    "a mode": lambda top: (top / "a.py").chmod(0o777),
    "a folder's mode": lambda top: (top / "src").chmod(0o700),
    "where a link leads": relink,
    "a link in place of a file": into_link,
    "a pipe that is gone": lambda top: (top / "pipe").unlink(),
    "a hook": lambda top: touch(top / ".git/hooks/pre-push"),
    "a new hook": lambda top: touch(top / ".git/modules/sub/hooks/post-merge"),
    "where a branch points": lambda top: touch(top / ".git/refs/heads/main"),
    "the branch that is out": lambda top: touch(top / ".git/HEAD"),
    "branches that were packed": lambda top: touch(top / ".git/packed-refs"),
    "git's configuration": lambda top: touch(top / ".git/config"),
    "git's attributes": lambda top: touch(top / ".git/info/attributes"),
    "a nested repository's hook": lambda top: touch(top / "src/sub/.git/hooks/x"),
    "a dependency": lambda top: touch(top / "node_modules/x/index.js"),
    "a script among compiled files": lambda top: touch(top / "src/__pycache__/x.pyc.sh"),
    "a link named like a cache": lambda top: (top / ".mypy_cache").symlink_to("src"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_makes_another_tree(root: Path, change: str) -> None:
    """Whatever could change what an approved command does."""
    before = tree_id(root)

    CHANGES[change](root)

    assert tree_id(root) != before


NOTHING: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "times": lambda top: os.utime(top / "a.py", (1, 1)),
    "reading": lambda top: (top / "a.py").read_bytes(),
    "the same text again": lambda top: touch(top / "a.py", "a.py"),
    "there and back": lambda top: (top / "a.py").rename(top / "x").rename(top / "a.py"),
    "compiling": lambda top: touch(top / "src/__pycache__/b.cpython-311.pyc.140"),
    "compiling anew": lambda top: touch(top / "__pycache__/n.cpython-311.pyc"),
    "tests": lambda top: touch(top / ".pytest_cache/v/cache/nodeids"),
    "linters": lambda top: (touch(top / ".ruff_cache/1/2"), touch(top / "src/.mypy_cache/x.json")),
    "git": lambda top: (touch(top / ".git/index"), touch(top / ".git/logs/refs/heads/main")),
    "what a link leads to": lambda top: (top / "link").stat(),
}


@pytest.mark.parametrize("change", NOTHING)
def test_what_comes_and_goes_by_itself_does_not_count(root: Path, change: str) -> None:
    """An approval is not void because somebody looked."""
    before = tree_id(root)

    NOTHING[change](root)

    assert tree_id(root) == before


TEXTS = st.sampled_from(["", "a", "b"])
ENTRIES = st.recursive(
    st.tuples(st.just("file"), TEXTS, st.sampled_from([0o600, 0o700]))
    | st.tuples(st.just("link"), st.sampled_from(["a", "b"])),
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "\n", "\udcff"]), inner, max_size=3),
    max_leaves=5,
)
TREES = st.dictionaries(st.sampled_from(["a", "b", "c"]), ENTRIES, max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TREES, TREES)
def test_equal_ids_are_equal_trees(tmp_path: Path, one: Any, other: Any) -> None:
    """However a tree came to be; whichever way it is opened; and a second time the same."""
    trees = [built(tmp_path / "1", one), built(tmp_path / "2", other)]

    ids = [tree_id(tree) for tree in trees]

    assert (ids[0] == ids[1]) is (one == other)
    assert ids == [tree_id(tree, opener=WalkingOpener()) for tree in trees]


def built(top: Path, described: Any) -> Path:
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for name, entry in described.items():
        if isinstance(entry, dict):
            built(top / name, entry)
        elif entry[0] == "link":
            (top / name).symlink_to(entry[1])
        else:
            (top / name).write_text(entry[1])
            (top / name).chmod(entry[2])
    return top


def test_one_entry_can_not_pass_for_two(tmp_path: Path) -> None:
    """Where a link leads is free text: it may look like what is told of the next entry."""
    one, two = tmp_path / "one", tmp_path / "two"
    built(one, {"c": ("link", f"da{0o120777}b")})
    built(two, {"a": ("link", "b"), "c": ("link", "d")})

    assert tree_id(one) != tree_id(two)


class Refusing(WalkingOpener):
    """Opens all but one name."""

    def __init__(self, name: str, error: type[OSError]) -> None:
        self.name = name
        self.error = error

    def open(self, root: int, parts: Parts, flags: int, *, links: bool) -> int:
        if self.name in parts:
            raise self.error
        return super().open(root, parts, flags, links=links)


@pytest.mark.parametrize("name", ["a.py", "src"])
def test_what_may_not_be_read_counts_by_its_status(root: Path, name: str) -> None:
    """The id is the same again, and another once the file is touched."""
    opener = Refusing(name, PermissionError)
    seen = tree_id(root, opener=opener, hashes=FileHashes())

    assert tree_id(root, opener=opener, hashes=FileHashes()) == seen != tree_id(root)
    os.utime(root / name, (1, 1))
    assert tree_id(root, opener=opener, hashes=FileHashes()) != seen


@pytest.mark.parametrize("name", ["a.py", "src", "link"])
def test_what_vanishes_on_the_way_is_survived(root: Path, name: str) -> None:
    """Others may work in the same folder; one that is not there is an error for people."""
    assert tree_id(root, opener=Refusing(name, FileNotFoundError), hashes=FileHashes())
    with pytest.raises(FileUnavailable, match="no such file"):
        tree_id(root / "none")


def test_a_large_file_is_not_read(root: Path) -> None:
    """It counts by its size, times and inode."""
    with (root / "large").open("wb") as file:
        file.truncate(LARGEST + 1)

    seen = tree_id(root, opener=Refusing("large", AssertionError))  # type: ignore[arg-type]

    with (root / "large").open("r+b") as file:
        file.write(b"x")
    assert tree_id(root) != seen


def test_a_file_is_read_once(root: Path) -> None:
    """As long as the system says the same of it; what was just written is read again."""
    hashes = FileHashes()
    status = (root / "a.py").stat()
    later = max(status.st_mtime_ns, status.st_ctime_ns) + 3 * 10**9
    hashes.keep(b"a.py", status, b"known", later)

    assert tree_id(root, hashes=hashes) != tree_id(root)
    os.utime(root / "a.py", (1, 1))
    assert tree_id(root, hashes=hashes) == tree_id(root)


def test_a_deep_tree_is_seen_to_its_end(tmp_path: Path) -> None:
    """Also where a path is too long for the system to take at once."""
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    before = tree_id(tmp_path)
    os.mkdir("end", dir_fd=at)
    os.close(at)

    assert tree_id(tmp_path) != before


# --- What lies behind a link that leads elsewhere is part of the ground (TL-13a).


def chain(outside: Path) -> Path:
    (outside / "near").symlink_to("far")
    (outside / "far").symlink_to("deep/file")
    return outside / "near"


BEHIND: dict[str, Callable[[Path], Path]] = {
    "a file": lambda outside: outside / "deep/file",
    "a folder": lambda outside: outside / "deep",
    "a folder above it": lambda outside: outside,
    "a chain of links": chain,
    "a way through the folder above": lambda _: Path("../outside/deep/file"),
    "a way that goes up late": lambda _: Path("src/../../outside/deep/file"),
}


@pytest.mark.parametrize("where", BEHIND)
def test_what_lies_behind_a_link_counts(root: Path, tmp_path: Path, where: str) -> None:
    """TL-13a: the text of a link says nothing of what it leads to."""
    outside = tmp_path / "outside"
    touch(outside / "deep/file", "one")
    (outside / "deep/round").symlink_to(outside)
    (root / "out").symlink_to(BEHIND[where](outside))
    before = tree_of(root)

    assert tree_of(root) == before
    touch(outside / "deep/file", "two")
    after = tree_of(root)
    assert after.id != before.id
    assert changes_between(list_tree(before), after) == "out (changed)"


@pytest.mark.parametrize("target", ["/", "..", ".", "missing", "src"])
def test_a_link_to_more_than_the_tree_or_into_it_is_its_text(
    root: Path, tmp_path: Path, target: str
) -> None:
    """What holds the workspace changes all the time; what is in it is met as it is.

    TL-13a: but nobody else would look at what is left out.
    """
    touch(root / ".pytest_cache/run.sh", "one")
    (root / "out").symlink_to(target)
    (root / "run.sh").symlink_to(".pytest_cache/run.sh")
    before = tree_id(root)

    touch(tmp_path / "beside", "new")
    assert tree_id(root) == before
    touch(root / ".pytest_cache/run.sh", "two")
    assert tree_id(root) != before


# --- The difference between two looks, in a few names.

ONE = {"a": "1", "b": "1", "d": "1", "d/x": "1", ".venv": "1", ".venv/x": "1", ".venv/y": "1"}
DIFFERENCES: list[tuple[dict[str, str], str]] = [
    (ONE, ""),
    (ONE | {"a": "2"}, "a (changed)"),
    (ONE | {"n": "1", "d/n": "1"}, "n (new), d/n (new)"),
    ({k: v for k, v in ONE.items() if k != "d/x"}, "d/x (gone)"),
    (ONE | {".venv/x": "2"}, ".venv (changed)"),
    (ONE | {"n\n\u202e": "1"}, "'n\\n\\u202e' (new)"),
    (ONE | {f"n{n:02}": "1" for n in range(12)}, ", ".join(f"n{n:02} (new)" for n in range(10))),
]


@pytest.mark.parametrize(("after", "said"), DIFFERENCES)
def test_the_difference_is_told_in_a_few_names(after: dict[str, str], said: str) -> None:
    """TL-13a: also where folders stand for what is in them."""
    more = ", 2 more" if len(after) > 17 else ""

    assert changes_between(list_tree(Tree("", ONE)), Tree("", after)) == said + more


@pytest.mark.long
def test_a_listing_is_short_however_large_the_tree_is() -> None:
    """TL-13a: it is kept with every question; folders stand for what they hold."""
    entries = {f"{n % 7}/{n % 50}/{n % 300}/{n % 1000}/{n}": "1" for n in range(30_000)}
    flat = {str(n): "1" for n in range(MOST_ENTRIES + 1)}

    assert len(list_tree(Tree("", entries)).entries) <= MOST_ENTRIES
    assert list_tree(Tree("", flat)).entries.keys() == {""}
    assert (
        changes_between(list_tree(Tree("", flat)), Tree("", flat | {"n": "1"})) == "files (changed)"
    )
