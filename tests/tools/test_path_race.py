"""A directory that is swapped for a link while it is used never lets anything out or in (ED-02).

The same attacker makes `resolve()`, check, `open()` escape hundreds of times in these loops.
"""

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from daruma.tools.errors import ToolError
from daruma.tools.files.beneath import FilesBeneath, Opener, WalkingOpener, best_opener, walk

LIBC = ctypes.CDLL(None, use_errno=True)
READS = 4000
WRITES = 400
OPENERS: list[Opener] = [WalkingOpener(), best_opener()]


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
