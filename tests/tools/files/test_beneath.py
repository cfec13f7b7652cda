"""File operations beneath one root: opened without a race, written whole or not at all."""

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from daruma.tools.errors import ToolError
from daruma.tools.files import DIRECTORY, FilesBeneath, best_opener
from daruma.tools.files._beneath import KernelOpener, Opener, WalkingOpener, walk

# --- Both ways of opening keep to the directory; the kernel's way is chosen where it works.

WALKING = WalkingOpener()
OPENERS: list[Opener] = [WALKING, best_opener()]


@contextmanager
def opened(
    opener: Opener, root: Path, *parts: str, links: bool = True
) -> Iterator[tuple[str, ...]]:
    """The location of what was opened."""
    top = os.open(root, DIRECTORY)
    try:
        fd = opener.open(top, parts, os.O_RDONLY, links=links)
        try:
            yield opener.location(top, fd, parts)
        finally:
            os.close(fd)
    finally:
        os.close(top)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with links that stay inside and links that lead out."""
    top = tmp_path / "work"
    (top / "real").mkdir(parents=True)
    (top / "real" / "file").write_text("inside")
    (top / "inner").symlink_to("real")
    (top / "real" / "up").symlink_to("../real/file")
    (top / "absolute").symlink_to(top / "real")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("outside")
    (top / "out").symlink_to("../outside")
    (top / "loop").symlink_to("loop")
    (top / "proc").symlink_to("/proc/self/root")
    return top


@pytest.mark.parametrize("opener", OPENERS)
def test_a_plain_path_is_opened(opener: Opener, root: Path) -> None:
    """A path without links is where its text says; the root itself can be opened."""
    with opened(opener, root, "real", "file") as location:
        assert location == ("real", "file")
    with opened(opener, root) as location:
        assert location == ()


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("first", ["out", "absolute", "loop", "proc"])
def test_a_link_that_leads_out_is_refused(opener: Opener, root: Path, first: str) -> None:
    """Links out, absolute links, loops and links through /proc are errors of the link (ED-02)."""
    with pytest.raises(OSError, match=r".") as caught, opened(opener, root, first, "file"):
        pass

    assert caught.value.errno in {errno.EXDEV, errno.ELOOP}


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("parts", [("real", "up"), ("inner", "file")])
def test_no_link_is_followed_when_links_are_off(
    opener: Opener, root: Path, parts: tuple[str, ...]
) -> None:
    """Where a real location is meant, even an inner link is an error."""
    with pytest.raises(OSError, match=r".") as caught, opened(opener, root, *parts, links=False):
        pass

    assert caught.value.errno == errno.ELOOP


@pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux's")
@pytest.mark.parametrize("parts", [("real", "up"), ("inner", "file"), ("inner", "up")])
def test_the_kernel_follows_links_that_stay_inside(root: Path, parts: tuple[str, ...]) -> None:
    """A link inside the tree works, and its real location is told.

    Linux 5.6 and later has openat2; were it not found, links would silently stop to work.
    """
    with opened(KernelOpener(), root, *parts) as location:
        assert location == ("real", "file")
    assert isinstance(best_opener(), KernelOpener)


@pytest.mark.parametrize("opener", OPENERS)
def test_descriptors_are_not_leaked(opener: Opener, root: Path) -> None:
    """However an opening ends, no descriptor stays open."""
    before = len(list(Path("/dev/fd").iterdir()))
    for parts in (("real", "file"), ("out", "file"), ("real", "none", "x"), ("real", "file", "x")):
        try:
            with opened(opener, root, *parts):
                pass
        except OSError:
            continue

    assert len(list(Path("/dev/fd").iterdir())) == before


# --- A directory that is swapped for a link while it is used never lets anything out or in
# (ED-02).
#
# The same attacker makes `resolve()`, check, `open()` escape hundreds of times in these loops.

LIBC = ctypes.CDLL(None, use_errno=True)
READS = 4000
WRITES = 400


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace with a directory `d` and a link to a directory outside, and that directory."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "d").mkdir(parents=True)
    outside.mkdir()
    (work / "d" / "file").write_bytes(b"inside")
    (outside / "file").write_bytes(b"outside")
    (work / "link").symlink_to(outside)
    return work, outside


def exchange(one: Path, other: Path) -> None:
    """Swap two names at once, so that neither is ever missing."""
    a, b = bytes(one), bytes(other)
    if sys.platform == "darwin":
        failed = LIBC.renamex_np(a, b, 2)
    else:
        failed = LIBC.renameat2(-100, a, -100, b, 2)
    assert failed == 0, ctypes.get_errno()


@contextmanager
def attacked(work: Path) -> Iterator[None]:
    """Swap the directory and the link for as long as the body runs."""
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            exchange(work / "d", work / "link")

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        yield
    finally:
        done.set()
        attacker.join()


@pytest.mark.parametrize("opener", OPENERS)
def test_no_read_escapes(places: tuple[Path, Path], opener: Opener) -> None:
    """Every read gives the inner file or an error; figures: 0 escapes (RELIABILITY 2)."""
    work, _ = places
    files, seen = FilesBeneath(work, opener), set[bytes]()
    with attacked(work):
        for _ in range(READS):
            with suppress(ToolError):
                seen.add(files.read("d/file"))

    assert seen == {b"inside"}


@pytest.mark.long
@pytest.mark.parametrize("opener", OPENERS)
def test_no_write_escapes(places: tuple[Path, Path], opener: Opener) -> None:
    """Neither a replaced nor a created nor a deleted file is ever one outside."""
    work, outside = places
    files = FilesBeneath(work, opener)
    with attacked(work):
        for number in range(WRITES):
            with suppress(ToolError):
                files.replace("d/file", b"changed")
            with suppress(ToolError):
                files.create(f"d/new/{number}", b"new")
            with suppress(ToolError):
                files.delete(f"d/new/{number}")

    assert (outside / "file").read_bytes() == b"outside"
    assert [each.name for each in outside.iterdir()] == ["file"]


@pytest.mark.parametrize("opener", OPENERS)
def test_no_listing_escapes(places: tuple[Path, Path], opener: Opener) -> None:
    """A walk never shows what lies outside."""
    work, outside = places
    (outside / "secret").touch()
    files, seen = FilesBeneath(work, opener), set[str]()
    with attacked(work):
        for _ in range(WRITES):
            with suppress(ToolError):
                seen.update(entry.path.rpartition("/")[2] for entry in walk(files, "."))

    assert "file" in seen
    assert "secret" not in seen
