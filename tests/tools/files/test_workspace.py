"""Files are read and written beneath the root only, whole, and with their attributes kept."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from daruma.state.errors import WorkspaceBusy
from daruma.tools.errors import FileUnavailable, PathRefused, ToolError
from daruma.tools.files import (
    DirectoryEntry,
    FilesBeneath,
    Workspace,
    aworkspace_locked,
    best_opener,
    list_entries,
    workspace_locked,
)
from daruma.tools.files._beneath import LARGEST_FILE, KernelOpener, Opener, WalkingOpener, walk


@pytest.fixture(params=[WalkingOpener(), best_opener()], ids=["walk", "best"])
def work(tmp_path: Path, request: pytest.FixtureRequest) -> FilesBeneath:
    """An empty workspace, with a file outside of it that must not be reached."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work_evil").write_text("twin")
    (tmp_path / "outside.txt").write_text("outside")
    opener: Opener = request.param
    return FilesBeneath(tmp_path / "work", opener)


def test_what_is_written_is_read(work: FilesBeneath) -> None:
    """Create makes the directories on the way; write puts new content in place."""
    work.create("a/b/c.bin", b"one")
    work.replace("a/b/c.bin", b"two")

    assert work.read("a/b/c.bin") == b"two"
    assert work.read(str(work.root / "a/b/c.bin")) == b"two"
    assert [entry.path for entry in walk(work, ".")] == ["a", "a/b", "a/b/c.bin"]
    (work.root / "a" / "again").symlink_to("..")  # a walk follows no link: it would be endless
    (work.root / "b").touch()
    found = [entry.path for entry in walk(work, ".")]
    assert found == ["a", "a/again", "a/b", "a/b/c.bin", "b"]


@pytest.mark.parametrize(
    "path", ["../outside.txt", "link.txt", "dir/outside.txt", "../work_evil", "/etc/hostname"]
)
def test_nothing_outside_is_reached(work: FilesBeneath, path: str) -> None:
    """Reading, writing, creating and deleting outside are refused (ED-02)."""
    (work.root / "link.txt").symlink_to("../outside.txt")
    (work.root / "dir").symlink_to("..")

    for attempt in (
        partial(work.read, path),
        partial(work.replace, path, b"x"),
        partial(work.delete, path),
        partial(work.create, f"{path}/new", b"x"),
    ):
        with pytest.raises(PathRefused):
            attempt()
    assert (work.root / "../outside.txt").read_text() == "outside"


def test_create_never_replaces(work: FilesBeneath) -> None:
    """A file, a directory and even a dangling link are in the way of a new file."""
    (work.root / "file").write_text("kept")
    (work.root / "directory").mkdir()
    (work.root / "dangling").symlink_to("../fresh")

    for name in ("file", "directory", "dangling"):
        with pytest.raises(FileUnavailable, match="exists"):
            work.create(name, b"x")
    assert (work.root / "file").read_text() == "kept"
    assert not (work.root / "../fresh").exists()


def test_a_write_keeps_the_mode(work: FilesBeneath) -> None:
    """The mode of a file survives its content (ED-03); a new one's is that of any other program."""
    for mode in (0o755, 0o640, 0o444, 0o4750):
        file = work.root / f"{mode:o}"
        file.write_text("old")
        file.chmod(mode)
        work.replace(file.name, b"new")

        assert stat.S_IMODE(file.stat().st_mode) == mode
        assert file.read_bytes() == b"new"
    (work.root / "other").touch()
    work.create("new", b"")
    assert (work.root / "new").stat().st_mode == (work.root / "other").stat().st_mode


def test_a_hard_link_outside_keeps_its_content(work: FilesBeneath, tmp_path: Path) -> None:
    """Writing replaces the name, not the inode that a file outside shares."""
    (work.root / "shared").hardlink_to(tmp_path / "outside.txt")
    work.replace("shared", b"changed")

    assert (tmp_path / "outside.txt").read_text() == "outside"


def test_a_failed_write_leaves_no_trace(work: FilesBeneath) -> None:
    """Neither a refused nor a failed write leaves a temporary file."""
    (work.root / "file").write_text("old")
    for attempt in (
        partial(work.create, "file", b"x"),
        partial(work.replace, "file", b"x" * (LARGEST_FILE + 1)),
        partial(work.replace, "none", b"x"),
    ):
        with pytest.raises(ToolError):
            attempt()

    assert [entry.path for entry in list_entries(work, ".")] == ["file"]
    assert (work.root / "file").read_text() == "old"


def test_special_files_are_refused_at_once(work: FilesBeneath) -> None:
    """A FIFO without a writer, a socket and a directory are no files (ED-02)."""
    os.mkfifo(work.root / "fifo")
    (work.root / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(work.root / "socket"))

        for name in ("fifo", "socket", "directory"):
            with pytest.raises(FileUnavailable):
                work.read(name)
            with pytest.raises(FileUnavailable):
                work.replace(name, b"x")


def test_the_limit_on_size_is_four_mebibytes(work: FilesBeneath) -> None:
    """A file of exactly 4 MiB is read, one byte more is refused with both figures (ED-03)."""
    (work.root / "fits").write_bytes(b"x" * LARGEST_FILE)
    (work.root / "over").write_bytes(b"x" * (LARGEST_FILE + 1))

    assert len(work.read("fits")) == LARGEST_FILE == 4 * 1024 * 1024
    with pytest.raises(FileUnavailable, match=r"4194305 bytes.*4194304"):
        work.read("over")


def test_git_is_out_of_bounds(work: FilesBeneath) -> None:
    """Git's files are neither read nor made, through a link neither, and not listed."""
    (work.root / ".git").mkdir()
    (work.root / ".git" / "config").touch()
    (work.root / "innocent").symlink_to(".git")

    for path in (".git/config", "innocent/config"):
        with pytest.raises(PathRefused):
            work.read(path)
    for path in (".git/hooks/pre-commit", "innocent/hook"):
        with pytest.raises(PathRefused):
            work.create(path, b"x")
    assert list_entries(work, ".") == [DirectoryEntry("innocent", "link")]
    assert [each.name for each in (work.root / ".git").iterdir()] == ["config"]


def test_a_write_through_an_inner_link_changes_its_target(tmp_path: Path) -> None:
    """Where links work, the link stays one and its target is what changes."""
    work = FilesBeneath(tmp_path)
    if not isinstance(best_opener(), KernelOpener):
        pytest.skip("links are not followed here")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    work.replace("link", b"new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"


@pytest.mark.parametrize("make", [Path.touch, Path.is_dir])
def test_a_root_that_is_no_directory_is_a_clear_error(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    """A workspace must be there: the error names it in one line."""
    root = tmp_path / "gone"
    make(root)

    with pytest.raises(FileUnavailable, match="gone: no such directory"):
        Workspace(root)


async def test_a_directory_for_a_command_must_be_one(tmp_path: Path) -> None:
    """A command's directory is absolute and inside, and a file is none."""
    work = Workspace(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").touch()

    assert await work.directory("sub") == work.root / "sub"
    with pytest.raises(FileUnavailable, match="not a directory"):
        await work.directory("file")


# --- Two runs of one host do not work in one workspace, nor in one inside the other (DU-03).

HOLDER = """
import sys
from daruma.tools.files import workspace_locked
with workspace_locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def places(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "link").symlink_to("a")
    return tmp_path


@pytest.mark.parametrize("other", ["a", "a/b", ".", "link", "link/b"])
def test_the_same_files_are_kept_apart(places: Path, other: str) -> None:
    """The folder itself, one in it, one above it, and by another name."""
    busy = pytest.raises(WorkspaceBusy, match=r"^another run on this machine works in ")
    with workspace_locked(str(places / "a")), busy, workspace_locked(str(places / other)):
        pytest.fail("two at work")

    with workspace_locked(str(places / other)):
        pass


def test_other_folders_are_free(places: Path) -> None:
    """Beside each other, with the folder above in common; nothing where nothing is there."""
    with workspace_locked(str(places / "a")), workspace_locked(str(places / "c")):
        pass
    with workspace_locked(None), workspace_locked(str(places / "gone")):
        pass


async def test_it_is_locked_and_left_asynchronously_too(places: Path) -> None:
    """While nothing is to be locked where there is no workspace."""
    named = str(places / "a")
    async with aworkspace_locked(None), aworkspace_locked(named):
        with pytest.raises(WorkspaceBusy), workspace_locked(named):
            pytest.fail("two at work")

    with workspace_locked(named):
        pass


@pytest.mark.long
def test_a_killed_process_leaves_nothing_locked(places: Path) -> None:
    """While it lives, it does."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(places / "a")]
    holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(WorkspaceBusy), workspace_locked(str(places / "a")):
        pytest.fail("two at work")
    holder.kill()
    holder.communicate()

    with workspace_locked(str(places / "a")):
        assert not os.listdir(places / "a" / "b")  # noqa: PTH208 - and nothing lies there
