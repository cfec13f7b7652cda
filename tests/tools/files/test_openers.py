"""Both ways of opening keep to the directory; the kernel's way is chosen where it works."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daruma.tools.files.beneath import DIRECTORY, KernelOpener, Opener, WalkingOpener, best_opener

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
    """A link inside the tree works, and its real location is told."""
    with opened(KernelOpener(), root, *parts) as location:
        assert location == ("real", "file")


@pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux's")
def test_the_kernels_way_is_chosen_here() -> None:
    """Linux 5.6 and later has openat2; were it not found, links would silently stop to work."""
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
