"""What was seen and edited is kept outside the workspace, for undo and caution."""

import stat
import threading
from pathlib import Path

import pytest

from daruma.tools.errors import EditRefused, FileChanged
from daruma.tools.files.edits import MOST_BYTES, MOST_EDITS, EditHistory

ROOT = Path("/work")


@pytest.fixture
def history(tmp_path: Path) -> EditHistory:
    """A history in a directory that is not there yet."""
    return EditHistory(tmp_path / "deep" / "edits")


def edit(history: EditHistory, before: bytes | None, after: bytes) -> None:
    """Note one edit of the file `f`."""
    with history.of(ROOT, "f") as past, past.edit(before, after):
        pass


def test_an_edit_survives_the_process(history: EditHistory) -> None:
    """A history opened anew on the same directory knows the former content."""
    edit(history, b"old", b"new")

    with EditHistory(history.directory).of(ROOT, "f") as past:
        assert past.content_before(past.last()) == b"old"
        assert past.drop_last() == 0
    with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="no edit to undo"):
        past.last()


def test_only_the_last_ten_edits_are_kept(history: EditHistory) -> None:
    """Older contents are dropped from the record and from the disk."""
    for number in range(MOST_EDITS + 5):
        edit(history, b"%d" % number, b"%d" % (number + 1))

    with history.of(ROOT, "f") as past:
        undone = []
        for _ in range(MOST_EDITS):
            undone.append(past.content_before(past.last()))
            past.drop_last()
        with pytest.raises(EditRefused):
            past.last()
    assert undone == [b"%d" % number for number in range(14, 4, -1)]
    assert not list(history.directory.glob("*/*.before"))


def test_the_bytes_kept_are_bounded(history: EditHistory) -> None:
    """Large files keep fewer edits: at most 16 MiB a file."""
    for number in range(8):
        edit(history, b"%d" % number * (4 * 1024 * 1024), b"x")

    kept = sum(each.stat().st_size for each in history.directory.glob("*/*.before"))
    assert 0 < kept <= MOST_BYTES


def test_a_file_never_seen_may_be_edited_and_a_changed_one_not(history: EditHistory) -> None:
    """Only a content other than the one seen last is refused."""
    with history.of(ROOT, "f") as past:
        past.refuse_if_changed(b"anything")
        past.saw(b"one")
        past.refuse_if_changed(b"one")
        with pytest.raises(FileChanged, match="changed since it was viewed: view it again"):
            past.refuse_if_changed(b"two")


def test_an_edit_that_failed_is_forgotten(history: EditHistory) -> None:
    """When the file can not be written, what was seen and done is as before."""
    with history.of(ROOT, "f") as past:
        past.saw(b"old")
        with pytest.raises(ZeroDivisionError), past.edit(b"old", b"new"):
            raise ZeroDivisionError

    with history.of(ROOT, "f") as past:
        past.refuse_if_changed(b"old")
        with pytest.raises(EditRefused):
            past.last()


def test_an_edit_is_on_disk_before_it_is_carried_out(history: EditHistory) -> None:
    """A crash while the file is written leaves what is needed to undo."""
    with history.of(ROOT, "f") as past, past.edit(b"old", b"new"):
        folder = next(history.directory.iterdir())

        assert (folder / "1.before").read_bytes() == b"old"
        assert b'"number":1' in (folder / "record.json").read_bytes()


def test_others_can_not_read_former_contents(history: EditHistory) -> None:
    """Directories have mode 0700 and files 0600."""
    edit(history, b"secret", b"new")

    paths = [history.directory, *history.directory.rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_damaged_history_never_gives_a_wrong_content(history: EditHistory) -> None:
    """A changed or missing former content is refused; a broken record is as if none were there."""
    edit(history, b"old", b"new")
    folder = next(history.directory.iterdir())
    (folder / "1.before").write_bytes(b"forged")
    with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="damaged"):
        past.content_before(past.last())
    (folder / "1.before").unlink()
    with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="damaged"):
        past.content_before(past.last())
    (folder / "record.json").write_bytes(b"{")

    with history.of(ROOT, "f") as past, pytest.raises(EditRefused, match="no edit"):
        past.last()


def test_files_and_workspaces_are_told_apart(history: EditHistory) -> None:
    """One directory may serve many files and workspaces."""
    edit(history, b"old", b"new")

    for root, location in ((ROOT, "g"), (Path("/other"), "f")):
        with history.of(root, location) as past, pytest.raises(EditRefused):
            past.last()


def test_a_history_inside_the_workspace_is_an_error(tmp_path: Path) -> None:
    """The model could change it there, and a rollback would take it along."""
    history = EditHistory(tmp_path / "edits")

    with pytest.raises(ValueError, match="outside"), history.of(tmp_path, "f"):
        pass


def test_one_edit_of_a_file_at_a_time(history: EditHistory) -> None:
    """While one thread holds a file's history, another one waits for it."""
    order: list[str] = []

    def second() -> None:
        with history.of(ROOT, "f"):
            order.append("second")

    with history.of(ROOT, "f"):
        waiting = threading.Thread(target=second)
        waiting.start()
        waiting.join(0.05)
        order.append("first")
    waiting.join()

    assert order == ["first", "second"]
