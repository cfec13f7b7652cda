"""What snapshots leave alone is what git ignores, as it was when the task began."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import CalledProcessError, run

import pytest
from tests.git_ground import git, repository

from daruma.tools.files import Parts
from daruma.tools.snapshots import Change, Snapshots, Store
from daruma.tools.snapshots._ignore import Rules, decoded, frozen
from daruma.tools.snapshots._store import workspace_opened

NAMES = ["a", "b", "ab", "a.c", "build", "x y", "é", "[z]", "#n", "!m", "a*"]
"""Few, so that patterns fit them."""

PIECES = [*NAMES, "*", "**", "?", "*.c", "[ab]", "[!a]*", "\\#n", "\\!m", "b?", "*a", "[a-z]?", "x\\ y", "\\a", "[[:alpha:]]", "[\\]b]", "a**"]  # fmt: skip  # noqa: E501

ODD = ["", "#", "/", "!", "!/", "\\", "a\\", "[", "[a", "[]a]", "//", "a//b", "***", "**/", "/**",
       "a/**/b", "*/", "[a-]", "[!]a]", "[^a]", "\\[z\\]", "\\\\", "a\\*", "[z-a]"]  # fmt: skip

TREES = 60


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty workspace."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def rules_of(work: Path, *exclude: str) -> Rules:
    with workspace_opened(work) as top:
        return frozen(top, work, exclude)


def covered(work: Path, rules: Rules) -> set[str]:
    """Return the files that belong to snapshots, by a walk of its own."""
    return {"/".join(path) for path in _files(work, rules, ())}


def _files(work: Path, rules: Rules, folder: Parts) -> Iterator[Parts]:
    for each in work.joinpath(*folder).iterdir():
        path = (*folder, each.name)
        directory = each.is_dir() and not each.is_symlink()
        if rules.outside(path, directory=directory) or rules.repository(path):
            continue
        if directory:
            yield from _files(work, rules, path)
        else:
            yield path


def by_git(work: Path) -> set[str]:
    """Return the files that git tracks or would add."""
    told = git(work, "ls-files", "-z", "-c", "-o", "--exclude-standard")
    return {os.fsdecode(each) for each in told.split(b"\0") if each}


def write(work: Path, *names: str, text: str = "") -> None:
    for name in names:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)


class Ground:
    """A random repository full of ignore files."""

    def __init__(self, work: Path, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable, not secret
        git(work, "init", "-q")
        self.fill(work, 3)
        self.index(work)
        write(work, ".gitignore", text=self.lines())
        if self.chance(0.5):
            write(work, ".git/info/exclude", text=self.lines())
        if self.chance(0.5):
            write(work.parent, ".config/git/ignore", text=self.lines())

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def fill(self, at: Path, depth: int) -> None:
        for name in self.random.sample(NAMES, self.random.randint(1, 5)):
            if depth and self.chance(0.5):
                (at / name).mkdir()
                self.fill(at / name, depth - 1)
                if self.chance(0.25):
                    write(at / name, ".gitignore", text=self.lines())
            else:
                write(at, name)

    def index(self, work: Path) -> None:
        """Let git track some of the files, whatever will ignore them."""
        for path in sorted(work.rglob("*")):
            if path.is_file() and ".git" not in path.parts and self.chance(0.1):
                git(work, "--literal-pathspecs", "add", "-f", str(path.relative_to(work)))

    def lines(self) -> str:
        patterns = (self.pattern() for _ in range(self.random.randint(1, 5)))
        return "\n".join(patterns) + self.random.choice(["", "\n"])

    def pattern(self) -> str:
        if self.chance(0.05):
            return self.random.choice(ODD)
        text = "/".join(self.random.choices(PIECES, k=self.random.choice([1, 1, 1, 2, 2, 3])))
        text = self.random.choice(["", "", "/"]) + text + self.random.choice(["", "", "/"])
        end = self.random.choice([" ", "  ", "\\ ", "\t", "\r"]) if self.chance(0.1) else ""
        return ("!" if self.chance(0.35) else "") + text + end


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(TREES))
def test_what_counts_is_what_git_would_add(work: Path, seed: int) -> None:
    """Random patterns at every level, in info/exclude and the user's own, and tracked files."""
    Ground(work, seed)

    rules = rules_of(work)

    assert covered(work, rules) == by_git(work)
    assert decoded(rules.encoded()) == rules


def test_rules_of_a_repository_around_the_workspace_hold(work: Path) -> None:
    """The workspace may be a folder of a repository."""
    write(work, "pkg/a.log", "pkg/build/b", "pkg/c", "pkg/out/d", "pkg/e.tmp", "pkg/in/out/f")
    write(work, ".gitignore", text="*.log\n/pkg/out\n")
    write(work, "pkg/.gitignore", text="build\n")
    git(work, "init", "-q")
    write(work, ".git/info/exclude", text="*.tmp\n")

    rules = rules_of(work / "pkg")

    assert covered(work / "pkg", rules) == {".gitignore", "c", "in/out/f"} == by_git(work / "pkg")


def test_a_worktree_has_the_rules_of_its_repository(work: Path) -> None:
    """Its ``.git`` is a file, and ``info/exclude`` lies with the repository."""
    write(work, "a")
    repository(work)
    write(work, ".git/info/exclude", text="*.tmp\n")
    tree = work.parent / "tree"
    git(work, "worktree", "add", "-q", str(tree))
    write(tree, "b.tmp")

    assert covered(tree, rules_of(tree)) == {"a"} == by_git(tree)


def test_a_repository_that_ignores_the_whole_workspace_does_not_count(work: Path) -> None:
    """A home folder under version control would otherwise leave nothing to keep."""
    write(work, ".gitignore", text="*\n")
    write(work, "pkg/a", "pkg/b.log")
    write(work, "pkg/.gitignore", text="*.log\n")
    git(work, "init", "-q")

    assert covered(work / "pkg", rules_of(work / "pkg")) == {".gitignore", "a"}


def test_rules_hold_without_a_repository(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ``.gitignore`` says what can be made again, with git or without.

    The workspace can not bring back what the settings exclude; snapshots of snapshots, which are
    our own data, would never end.
    """
    monkeypatch.setenv("DARUMA_DATA_DIR", str(work / "my data"))
    write(work, "a.pyc", "a.py", "sub/b.pyc", "big.bin", "sub/big.bin", "my data/store")
    write(work, ".gitignore", text="*.pyc\n")
    write(work, "sub/.gitignore", text="!*.bin\n")

    assert covered(work, rules_of(work, "*.bin")) == {"a.py", ".gitignore", "sub/.gitignore"}


def test_a_repository_inside_has_rules_of_its_own(work: Path) -> None:
    """To git, what the outer repository ignores does not hold in the inner one."""
    write(work, ".gitignore", text="*.log\nvendor/\n")
    write(work, "sub/x.log", "sub/y.tmp", "sub/tracked.tmp", "x.log", "vendor/dep/z")
    write(work, "sub/.gitignore", text="*.tmp\n")
    git(work, "init", "-q")
    git(work / "sub", "init", "-q")
    git(work / "sub", "add", "-f", "tracked.tmp")

    rules = rules_of(work)

    assert covered(work, rules) == {".gitignore"} | {f"sub/{name}" for name in by_git(work / "sub")}
    assert rules.repositories == {".git", "sub/.git"}


def test_rules_are_those_of_the_tasks_start(work: Path, tmp_path: Path) -> None:
    """The work can not hide files by ignoring them, nor bring in those that were ignored."""
    write(work, ".gitignore", text="secret\n")
    write(work, "secret", "a")
    snapshots = Snapshots(work, "t", Store(tmp_path / "store.sqlite3"))
    first = snapshots.take("first", by="others", fresh=True).snapshot
    write(work, ".gitignore", text="*\n!secret\n")
    write(work, "secret", "a", text="changed")

    taken = snapshots.take("second", by="work")

    assert [each.path for each in taken.changes] == [".gitignore", "a"]
    assert taken.snapshot.rules == first.rules


def test_what_either_rules_leave_alone_is_not_told(work: Path, tmp_path: Path) -> None:
    """Between tasks with other rules only what both look at can be compared."""
    write(work, ".gitignore", text="one\n")
    write(work, "one", "two", "three")
    snapshots = Snapshots(work, "t", Store(tmp_path / "store.sqlite3"))
    snapshots.take("first", by="others", fresh=True)
    write(work, ".gitignore", text="two\n")
    write(work, "three", text="changed")
    git(work, "init", "-q")

    taken = snapshots.take("second", by="others", fresh=True)

    changed = [Change(".gitignore", "changed"), Change("three", "changed")]
    assert [each for each in taken.changes if each.path != ".git"] == changed


def test_a_repository_whose_index_is_broken_is_read_all_the_same(work: Path) -> None:
    """Then tracked files that are ignored do not count."""
    write(work, "a.log", "b", "c.tmp")
    write(work, ".gitignore", text="*.log\n")
    write(work, "mine", text="*.tmp")  # which the repository names, as a path beneath it
    repository(work)
    git(work, "config", "core.excludesFile", "mine")
    git(work, "add", "-f", "a.log")
    git(work, "rm", "-q", "--cached", "c.tmp")
    assert covered(work, rules_of(work)) == {"a.log", "b", "mine", ".gitignore"}

    write(work, ".git/index", text="DIRCbroken")

    assert covered(work, rules_of(work)) == {"b", "mine", ".gitignore"}


FETCHING = """
git init -q nested && cd nested && mkdir in out && echo a > in/a && echo b > out/b
echo '*.log' > .gitignore && git add . && git -c user.name=a -c user.email=a@b commit -qm a
git sparse-checkout init --cone --sparse-index && git sparse-checkout set in
tree=$(git rev-parse HEAD:out); rm -f .git/objects/${tree%${tree#??}}/${tree#??}
git config core.repositoryFormatVersion 1
git config extensions.partialClone origin && git config remote.origin.promisor true
git config remote.origin.url /nowhere && git config remote.origin.uploadpack "touch $PWD/../canary;"
"""


def listed_by_git(_: int, work: Path) -> bytes:
    return git(work / "nested", "ls-files", "-ci", "--exclude-standard")


@pytest.mark.parametrize("read", [frozen, listed_by_git])
def test_what_a_command_left_in_a_repository_is_not_run(
    read: Callable[[int, Path], object], work: Path
) -> None:
    """SE-01, C1: git lists such an index by fetching, through a program that the settings name."""
    run(["sh", "-c", FETCHING], cwd=work, check=True)
    with workspace_opened(work) as top, suppress(CalledProcessError):
        read(top, work)

    assert (work / "canary").exists() is (read is not frozen)


@pytest.mark.parametrize("file", ["/dev/zero", "pipe"])
def test_the_users_patterns_may_be_named_by_a_command(file: str, work: Path) -> None:
    """In the repository's settings, which are read as a text: nothing hangs or is included."""
    git(work, "init", "-q")
    os.mkfifo(work / "pipe")
    git(work, "config", "core.excludesFile", file)
    git(work, "config", "include.path", str(work / "pipe")) if file == "pipe" else None

    assert rules_of(work).sources == ()
