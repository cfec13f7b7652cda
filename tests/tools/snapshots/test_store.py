"""A store is whole or says why not, and how to go on."""

import fcntl
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests import warm

from daruma.tools.snapshots import Snapshots, SnapshotUnavailable, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that is not there yet."""
    return Store(tmp_path / "kept" / "store.sqlite3")


def test_what_a_failing_block_wrote_is_gone(store: Store) -> None:
    """A store is never half-written; what was committed before stays."""
    put: list[str] = []

    def fail() -> None:
        with store.locked() as contents:
            put.append(contents.put_blob(b"first"))
            contents.commit()
            put.append(contents.put_blob(b"second"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    with store.locked() as contents:
        assert [contents.has_blob(each) for each in put] == [True, False]


def test_a_store_is_locked_to_the_end_of_the_block(store: Store) -> None:
    """Also after a commit: nobody takes a snapshot in the middle of a restore.

    A process that was stopped in the middle does not stop all others for ever.
    """
    impatient = Store(store.path, patience=0)
    with store.locked() as contents:
        contents.commit()
        with store.path.with_suffix(".lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(SnapshotUnavailable, match="in use by another process"):
            impatient.locked().__enter__()

    with impatient.locked() as contents:
        assert contents.put_blob(b"as ever")


def test_a_store_is_for_its_owner_alone(store: Store) -> None:
    """It holds what a workspace holds, secrets too."""
    with store.locked():
        pass

    modes = [each.stat().st_mode & 0o077 for each in (store.path, store.path.parent)]
    assert modes == [0, 0]


def test_what_is_no_store_of_ours_is_told(store: Store, tmp_path: Path) -> None:
    """The file's name, and that moving it away helps; one of another version is not touched.

    So is a file where the folder should be.
    """
    store.path.parent.mkdir()
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("PRAGMA user_version = 99")
    newer = store.path.read_bytes()
    (tmp_path / "file").write_text("")
    no_store = Store(tmp_path / "file" / "store.sqlite3")

    for data, said in (
        (newer, r"format 99, .*move the file away"),
        (b"no database" * 1000, r"store\.sqlite3 are damaged .*move the file"),
    ):
        store.path.write_bytes(data)
        with pytest.raises(SnapshotUnavailable, match=said):
            store.locked().__enter__()
        assert store.path.read_bytes() == data
    with pytest.raises(SnapshotUnavailable, match=r"DARUMA_DATA_DIR"):
        no_store.locked().__enter__()


@pytest.mark.parametrize("data", [b"short", b"long" * 1000], ids=["plain", "packed"])
def test_a_content_that_has_rotted_is_told(store: Store, data: bytes) -> None:
    """Nothing wrong is ever handed out."""
    with store.locked() as contents:
        digest = contents.put_blob(data)
        other = contents.put_blob(data + b"x")
        sql = "UPDATE blobs SET data = (SELECT data FROM blobs WHERE hash = ?) WHERE hash = ?"
        contents.database.execute(sql, (other, digest))

    with pytest.raises(SnapshotUnavailable, match="damaged"), store.locked() as contents:
        contents.blob(digest)


def test_a_full_disk_is_told_and_changes_nothing(store: Store) -> None:
    """What was there before is there afterwards."""
    with store.locked() as contents:
        digest = contents.put_blob(b"before")

    def fill() -> None:
        with store.locked() as contents:
            (pages,) = contents.database.execute("PRAGMA page_count").fetchone()
            contents.database.execute(f"PRAGMA max_page_count = {pages}")
            contents.put_blob(os.urandom(1_000_000))

    with pytest.raises(SnapshotUnavailable, match="no room"):
        fill()

    with store.locked() as contents:
        assert contents.blob(digest) == b"before"
        assert contents.database.execute("SELECT count(*) FROM blobs").fetchone() == (1,)


FULL = """
import os, sys
from pathlib import Path
from daruma.tools.snapshots import SnapshotUnavailable
from daruma.tools.snapshots import Store
store = Store(Path(sys.argv[1], "store.sqlite3"))
for before in (0, 1, 2):  # a file that is not there yet, and one that is
    try:
        with store.locked() as contents:
            for number in range(before and 60):
                contents.put_blob(os.urandom(100_000))
    except SnapshotUnavailable as error:
        assert "no room" in str(error), error
    print(os.statvfs(sys.argv[1]).f_bfree)
"""


@pytest.mark.long
def test_a_full_disk_has_its_room_back(tmp_path: Path) -> None:
    """What was written of a snapshot that had no room is gone at once, its log too."""
    mounted = 'mount -t tmpfs -o size=3m tmpfs "$0" && exec "$1" -c "$2" "$0"'
    argv = ["unshare", "-rm", "sh", "-c", mounted, str(tmp_path), sys.executable, FULL]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(done.stderr)

    empty, *after = map(int, done.stdout.split())
    assert min(after) > empty - 20, done.stderr


KILLED = """
import os, sys
from pathlib import Path
from daruma.tools.snapshots import Store
with Store(Path(sys.argv[1])).locked() as contents:
    for number in range(200):
        contents.put_blob(os.urandom(50_000))
    os.kill(os.getpid(), 9)
"""


def test_a_killed_writer_leaves_the_store_whole(store: Store) -> None:
    """The next one finds what was there before, and no lock."""
    with store.locked() as contents:
        digest = contents.put_blob(b"before")

    done = warm.run(["-c", KILLED, str(store.path)])

    assert done.returncode == -9
    with store.locked() as contents:
        assert contents.blob(digest) == b"before"
        assert contents.database.execute("SELECT count(*) FROM blobs").fetchone() == (1,)
        assert contents.database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_no_error_of_the_database_gets_out(store: Store) -> None:
    """Callers know one error."""
    with pytest.raises(SnapshotUnavailable, match="can not be used"), store.locked() as contents:
        contents.database.execute("SELECT * FROM nothing")

    assert sqlite3.connect(store.path).execute("PRAGMA quick_check").fetchone() == ("ok",)


@pytest.mark.parametrize("half", [b"a" * 200_000, os.urandom(200_000)], ids=["plain", "random"])
def test_a_large_content_comes_back_whole(store: Store, half: bytes) -> None:
    """Only its beginning is tried before it is packed or not."""
    data = os.urandom(70_000) + half

    with store.locked() as contents:
        assert contents.blob(contents.put_blob(data)) == data


# --- Connections stay open for who comes next.


def test_an_operation_is_one_commit(tmp_path: Path, store: Store) -> None:
    """Each waits for the disk. Looking alone commits nothing that would have to be written."""
    (tmp_path / "work").mkdir()
    snapshots = Snapshots(tmp_path / "work", "t", store)
    snapshots.take("first", by="others", fresh=True)
    log = Path(f"{store.path}-wal")
    told: list[str] = []
    with store.locked() as contents:
        contents.database.set_trace_callback(told.append)
    began = len(told)

    (tmp_path / "work" / "new").write_text("new")
    snapshots.take("second", by="work")
    taken, size = told[began:], log.stat().st_size
    snapshots.kept()

    assert taken.count("COMMIT") == 1
    assert log.stat().st_size == size


def test_a_store_that_is_moved_away_begins_anew(store: Store) -> None:
    """As its errors advise, while this process still has it open."""
    with store.locked() as contents:
        digest = contents.put_blob(b"before")

    store.path.rename(store.path.with_name("away"))

    with store.locked() as contents:
        assert not contents.has_blob(digest)
        contents.put_blob(b"after")
    assert sqlite3.connect(store.path).execute("SELECT count(*) FROM blobs").fetchone() == (1,)


def test_a_fork_has_connections_of_its_own(store: Store) -> None:
    """Those of its parent stay with that: both go on."""
    with store.locked() as contents:
        contents.put_blob(b"parent")

    child = os.fork()
    if child == 0:
        with store.locked() as contents:
            contents.put_blob(b"child")
        os._exit(0)
    os.waitpid(child, 0)

    with store.locked() as contents:
        contents.put_blob(b"parent again")
        assert contents.database.execute("SELECT count(*) FROM blobs").fetchone() == (3,)
        assert contents.database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_many_stores_do_not_stay_open_for_ever(tmp_path: Path) -> None:
    """Each takes three files of the process."""
    for number in range(20):
        with Store(tmp_path / str(number) / "store.sqlite3").locked() as contents:
            contents.put_blob(b"x")

    opened = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert sum(each.startswith(str(tmp_path)) for each in opened) < 40


def test_a_long_log_is_folded_into_the_file(store: Store) -> None:
    """It would take the room of every content twice, for as long as the process lives."""
    with store.locked() as contents:
        for _ in range(10):
            contents.put_blob(os.urandom(1_000_000))

    assert Path(f"{store.path}-wal").stat().st_size == 0
    assert store.path.stat().st_size > 10_000_000
