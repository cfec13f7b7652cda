"""Merging two versions of a text with what they both come from, by `git merge-file`."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daruma.tools.team.git_copy import git_environment

SECONDS: Final = 60.0
"""How long one file may take."""

LOOKED_AT: Final = 8000
"""Bytes in which a zero says that it is no text: git's own rule."""

_ERROR: Final = 128
"""From this code on it is no number of conflicts."""


@dataclass(frozen=True, slots=True)
class TextMerge:
    """Two versions put together; ``clean`` is False where it holds conflict markers."""

    text: bytes
    clean: bool


class NotMerged(Exception):
    """Raised when texts can not be merged at all; the text says why, in a few words."""


def is_text(data: bytes) -> bool:
    """Whether a content can be merged line by line."""
    return b"\0" not in data[:LOOKED_AT]


def merge_text(
    base: bytes, mine: bytes, theirs: bytes, labels: tuple[str, str] = ("mine", "theirs")
) -> TextMerge:
    """Merge line by line; changes that touch each other are conflicts, none is dropped.

    Blocks for a few milliseconds, and needs no repository. ``labels`` stand at the markers, mine
    first. Raises :class:`NotMerged`.
    """
    with tempfile.TemporaryDirectory(prefix="daruma-merge-") as folder:
        place = Path(folder)
        for name, data in (("mine", mine), ("base", base), ("theirs", theirs)):
            (place / name).write_bytes(data)
        marks = (item for label in (labels[0], "before", labels[1]) for item in ("-L", label))
        done = _run(["git", "merge-file", "-p", *marks, "mine", "base", "theirs"], place)
    if not 0 <= done.returncode < _ERROR:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"]
        raise NotMerged(f"git merge-file: {said[-1][:200]}")
    return TextMerge(done.stdout, clean=done.returncode == 0)


def _run(argv: list[str], folder: Path) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(
            argv,
            cwd=folder,
            env=git_environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise NotMerged("git is not installed, which merges texts") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise NotMerged(f"git merge-file can not be run: {error}") from None
