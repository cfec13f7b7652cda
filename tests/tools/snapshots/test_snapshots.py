"""Snapshots hold a workspace as it was, whatever is in it, and touch nothing."""

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import warm
from tests.git_ground import git, repository

from daruma.tools.snapshots import Change, Snapshots, SnapshotUnavailable, Store, store_of

NAMES = st.one_of(
    st.sampled_from(["a", "b", "-rf", "new\nline", "e\u0301", "\u00e9", "a ", "\\", "C:", "*"]),
    st.binary(min_size=1, max_size=6).filter(lambda name: not {0, 47} & {*name}),
).map(os.fsdecode)
LEAVES = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=400), st.sampled_from([0o600, 0o644, 0o4755])),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"/etc/passwd", b"../..", b"\xff"])),
)
TREES = st.recursive(
    LEAVES,
    lambda inside: st.tuples(
        st.just("directory"),
        st.dictionaries(NAMES, inside, max_size=4),
        st.sampled_from([0o755, 0o700, 0o2775, 0o1777]),
    ),
    max_leaves=12,
)


def build(at: Path, tree: tuple[object, ...]) -> None:
    """Make a tree of the strategy above."""
    match tree:
        case ("file", bytes(data), int(mode)):
            at.write_bytes(data)
            at.chmod(mode)
        case ("link", bytes(target)):
            at.symlink_to(os.fsdecode(target))
        case ("directory", dict(inside), int(mode)):
            at.mkdir(exist_ok=True)
            for name, each in inside.items():
                if name not in {".", ".."}:
                    build(at / name, each)
            at.chmod(mode)


def look(top: Path) -> dict[bytes, tuple[int, bytes]]:
    """Read a tree without any of the code that is tested: paths to modes and contents."""
    found = {b".": (top.stat().st_mode, b"")}
    for folder, directories, files in os.walk(top):
        for name in (*directories, *files):
            path = Path(folder, name)
            mode, content = path.lstat().st_mode, b""
            if stat.S_ISLNK(mode):
                mode, content = stat.S_IFLNK, bytes(path.readlink())
            elif stat.S_ISREG(mode):
                content = path.read_bytes()
            found[bytes(path.relative_to(top))] = mode, content
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a few files."""
    work = tmp_path / "work"
    for name in ("a.py", "src/b.py", "src/deep/c.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    return work


@pytest.fixture
def snapshots(work: Path, tmp_path: Path) -> Snapshots:
    """The snapshots of that workspace."""
    return Snapshots(work, "t", Store(tmp_path / "kept" / "store.sqlite3"))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, TREES, max_size=5))
def test_what_is_written_out_is_what_was_taken(
    tmp_path_factory: pytest.TempPathFactory, inside: dict[str, tuple[object, ...]]
) -> None:
    """Contents, modes, links, empty directories and names of any bytes come out as they went in."""
    top = tmp_path_factory.mktemp("any")
    inside = {name: each for name, each in inside.items() if name != ".gitignore"}
    build(top / "work", ("directory", inside, 0o750))
    snapshots = Snapshots(top / "work", "t", Store(top / "store.sqlite3"))

    taken = snapshots.take("first", by="others").snapshot
    snapshots.materialise(taken.id, top / "out")

    assert look(top / "out") == look(top / "work")
    assert snapshots.changes(taken.id) == ()


def test_changes_are_told_by_path(work: Path, snapshots: Snapshots) -> None:
    """Added, changed and deleted files are told, and directories where nothing else tells them."""
    first = snapshots.take("first", by="others").snapshot
    (work / "a.py").unlink()
    (work / "src/b.py").chmod(0o755)
    (work / "new").mkdir()
    (work / "swap").symlink_to("a.py")
    (work / "n/m").mkdir(parents=True)
    (work / "n/m/file").write_text("")

    taken = snapshots.take("second", by="work")

    told = {(each.path, each.what) for each in taken.changes}
    assert told == {
        ("a.py", "deleted"),
        ("src/b.py", "changed"),
        ("new", "added"),
        ("swap", "added"),
        ("n/m/file", "added"),
    }
    assert snapshots.changes(first.id) == taken.changes
    assert snapshots.changes(taken.snapshot.id, first.id) != taken.changes


def test_a_mode_of_the_workspace_itself_counts(work: Path, snapshots: Snapshots) -> None:
    """``chmod -R`` changes the workspace's own mode as well."""
    work.chmod(0o755)
    snapshots.take("first", by="others")
    work.chmod(0o777)

    assert snapshots.take("second", by="work").changes == (Change(".", "changed"),)


def test_changes_are_those_since_no_undo(work: Path, snapshots: Snapshots) -> None:
    """After an undo the work is told what differs from what it has seen itself."""
    snapshots.note(["a.py"], "edit")
    assert snapshots.kept() == ()  # there is nothing that an edit could be told from
    snapshots.take("seen", by="work")
    (work / "a.py").write_text("undone")
    snapshots.take("undo", by="undo")

    assert snapshots.take("next", by="others").changes == (Change("a.py", "changed"),)


def test_an_edit_is_noted_alone(work: Path, snapshots: Snapshots) -> None:
    """What somebody else changed at the same time is not taken for the work's."""
    before = snapshots.take("before", by="others").snapshot
    (work / "src/b.py").write_text("the editor's")
    (work / "new/deep").mkdir(parents=True)
    (work / "new/deep/file").write_text("the editor's")
    (work / "a.py").write_text("somebody's")
    (work / "src/deep/c.py").unlink()

    snapshots.note(["src/b.py", "new/deep/file", "src/deep/c.py"], "edit")

    noted = snapshots.kept()[-1]
    paths = [each.path for each in snapshots.changes(before.id, noted.id)]
    assert paths == ["new/deep/file", "src/b.py", "src/deep/c.py"]
    assert noted.by == "work"
    assert snapshots.take("after", by="others").changes == (Change("a.py", "changed"),)


def test_directories_may_lie_deep(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    """Three hundred directories, with names that make the path longer than the system's limit."""
    at = os.open(work, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 30, dir_fd=at)
        below = os.open("d" * 30, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=at))
    os.close(at)

    taken = snapshots.take("deep", by="work").snapshot
    snapshots.materialise(taken.id, tmp_path / "out")

    assert Snapshots(tmp_path / "out", "t", snapshots.store).changes(taken.id) == ()


def test_what_may_not_be_read_is_known_by_name(work: Path, snapshots: Snapshots) -> None:
    """An unreadable file or directory is said to be not kept, and everything else is."""
    (work / "a.py").chmod(0)
    (work / "src/deep").chmod(0)
    if os.access(work / "a.py", os.R_OK):
        pytest.skip("this account may read everything")

    taken = snapshots.take("first", by="others").snapshot
    (work / "src/deep").chmod(0o755)

    assert sorted(taken.unkept) == ["a.py", "src/deep"]


def test_what_is_not_kept_is_known_by_name(
    work: Path, snapshots: Snapshots, tmp_path: Path
) -> None:
    """More than 128 MiB; a pipe, which is not opened; what a link leads to is not even that."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("1")
    (work / "link").symlink_to(tmp_path / "outside")
    with (work / "large").open("wb") as file:
        file.truncate(128 * 1024 * 1024 + 1)

    taken = snapshots.take("first", by="others").snapshot
    (tmp_path / "outside/secret").write_text("2")
    os.truncate(work / "large", 128 * 1024 * 1024 + 2)
    os.mkfifo(work / "pipe")
    after = snapshots.take("second", by="work")

    assert taken.unkept == ("large",)
    assert after.changes == (Change("large", "changed"), Change("pipe", "added"))
    assert after.snapshot.root != taken.root


def test_names_that_vanish_meanwhile_are_not_there(work: Path, snapshots: Snapshots) -> None:
    """A workspace in which files come and go all the time can be kept."""
    done = threading.Event()

    def busy() -> None:
        number = 0
        while not done.is_set():
            number += 1
            folder = work / f"d{number % 7}"
            folder.mkdir(exist_ok=True)
            (folder / "file").write_text("x")
            (folder / "file").unlink()
            folder.rmdir()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        taken = [snapshots.take("busy", by="work").snapshot for _ in range(30)]
    finally:
        done.set()
        thread.join()

    assert len({each.id for each in taken}) == 30
    assert snapshots.take("still", by="work").snapshot.unkept == ()


TAKE = """
import sys
from pathlib import Path
from daruma.tools.snapshots import Snapshots
from daruma.tools.snapshots import Store
for number in range(5):
    Snapshots(Path(sys.argv[1]), sys.argv[3], Store(Path(sys.argv[2]))).take("x", by="work")
"""


def test_processes_and_threads_take_at_once(work: Path, tmp_path: Path) -> None:
    """Everybody gets every snapshot, and all are of the same state."""
    store = tmp_path / "kept" / "store.sqlite3"

    def take(thread: str) -> None:
        for _ in range(5):
            Snapshots(work, thread, Store(store)).take("x", by="work")

    threads = [threading.Thread(target=take, args=(f"t{n}",)) for n in range(3)]
    processes = [warm.start(["-c", TAKE, str(work), str(store), f"p{n}"]) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [process.wait() for process in processes] == [0, 0]
    kept = [Snapshots(work, name, Store(store)).kept() for name in ("p0", "p1", "t0", "t1", "t2")]
    assert [len(each) for each in kept] == [5] * 5
    assert len({each.root for some in kept for each in some}) == 1


def test_the_users_git_is_untouched(work: Path, snapshots: Snapshots) -> None:
    """Index, HEAD, refs, stash, reflog and config stay as they are, byte for byte and in time."""
    repository(work)
    (work / "a.py").write_text("stashed")
    git(work, "stash")
    (work / "a.py").write_text("changed")
    (work / "untracked").write_text("")
    status = git(work, "status", "--porcelain")
    before = _git_files(work)

    taken = snapshots.take("first", by="others", fresh=True).snapshot
    snapshots.materialise(taken.id, work.parent / "out")
    snapshots.prune(older_than=0)

    assert _git_files(work) == before
    assert git(work, "status", "--porcelain") == status
    assert not (work.parent / "out/.git").exists()


def _git_files(work: Path) -> dict[Path, tuple[bytes, int]]:
    files = [each for each in (work / ".git").rglob("*") if each.is_file()]
    return {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in files}


def test_a_new_repository_is_kept_like_any_directory(work: Path, snapshots: Snapshots) -> None:
    """A ``.git`` that came with the work can be taken away again and brought back."""
    first = snapshots.take("first", by="others").snapshot
    git(work, "init", "-q")

    taken = snapshots.take("second", by="work")
    snapshots.materialise(taken.snapshot.id, work.parent / "out")

    assert Change(".git/HEAD", "added") in taken.changes
    assert (work.parent / "out/.git/HEAD").read_bytes() == (work / ".git/HEAD").read_bytes()
    assert snapshots.changes(first.id, taken.snapshot.id) == taken.changes


def test_an_old_repository_is_never_entered(work: Path, snapshots: Snapshots) -> None:
    """Of a ``.git`` that was there only that it is there is known."""
    repository(work / "src")
    taken = snapshots.take("first", by="others").snapshot
    git(work / "src", "commit", "-q", "--allow-empty", "-m", "more")

    assert snapshots.changes(taken.id) == ()


def test_what_can_not_be_done_is_told(work: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    """One line, and nothing is kept; what is in a folder could be lost."""
    gone = Snapshots(tmp_path / "gone", "t", snapshots.store)
    taken = snapshots.take("first", by="others").snapshot

    with pytest.raises(SnapshotUnavailable, match=r"gone: No such file or directory"):
        gone.take("first", by="others")
    assert gone.kept() == ()
    with pytest.raises(SnapshotUnavailable, match=r"no snapshot 'x' of this workspace"):
        snapshots.changes("x")
    with pytest.raises(SnapshotUnavailable, match="not empty"):
        snapshots.materialise(taken.id, work)


def test_a_worktree_shares_the_store_of_its_workspace(
    work: Path, snapshots: Snapshots, tmp_path: Path
) -> None:
    """The snapshots of a team member can be put into the workspace.

    What another thread took is not told, but can be named.
    """
    theirs = Snapshots(work, "other", snapshots.store).take("theirs", by="others").snapshot
    assert (snapshots.kept(), snapshots.changes(theirs.id)) == ((), ())
    store = store_of(tmp_path / "work")
    worktree = tmp_path / "data" / "worktrees" / store.parent.name / "thread" / "phase"

    assert store_of(worktree) == store
    assert store_of(tmp_path / "other") != store


def test_old_snapshots_go_and_so_does_what_only_they_held(
    work: Path, snapshots: Snapshots, tmp_path: Path
) -> None:
    """The file shrinks; what is kept by name stays whole, and so does what came after it."""
    clock = iter([0.0, 1000.0, 2000.0, 2000.0, 5000.0])
    snapshots.now = lambda: next(clock)
    (work / "large").write_bytes(os.urandom(3_000_000))
    snapshots.take("old", by="others")
    (work / "large").unlink()
    named = snapshots.take("named", by="work").snapshot
    new = snapshots.take("new", by="work").snapshot
    _forget_when(snapshots)
    size = snapshots.store.path.stat().st_size

    gone = snapshots.prune(older_than=500, keep=[named.id])

    assert gone == 1
    assert [each.id for each in snapshots.kept()] == [named.id, new.id]
    assert snapshots.store.path.stat().st_size < size - 2_900_000
    snapshots.materialise(named.id, tmp_path / "out")
    assert look(tmp_path / "out") == look(work)


def _forget_when(snapshots: Snapshots) -> None:
    with snapshots.store.locked() as contents:
        for table in ("blobs", "trees"):
            contents.database.execute(f"UPDATE {table} SET put_at = 0")  # noqa: S608 - constants


def test_what_is_put_just_now_outlives_pruning(snapshots: Snapshots) -> None:
    """A content that is about to be used by a restore is held by no snapshot yet."""
    snapshots.take("first", by="others")
    with snapshots.store.locked() as contents:
        digest = contents.put_blob(b"about to be used")

    snapshots.prune(older_than=0)

    with snapshots.store.locked() as contents:
        assert contents.blob(digest) == b"about to be used"


def test_what_is_found_after_work_that_was_cut_short_is_the_works(
    work: Path, snapshots: Snapshots
) -> None:
    """A crash in the middle of a command leaves its changes to whoever looks next."""
    first = snapshots.take("before", by="work", opens=True).snapshot
    (work / "made").write_text("by the work that was cut short")

    found = snapshots.take("begin again", by="others")

    assert (found.snapshot.by, found.changes) == ("work", ())
    assert snapshots.restore(first.id, last="work").exact
    assert not (work / "made").exists()


def test_an_edit_that_changed_nothing_closes_the_work(work: Path, snapshots: Snapshots) -> None:
    """What changes after it is not the work's any more."""
    snapshots.take("first", by="others")
    snapshots.open("edit")

    snapshots.note(["absent"], "edit")

    (work / "a person's").write_text("made later")
    assert snapshots.take("later", by="others").snapshot.by == "others"
