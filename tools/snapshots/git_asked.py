"""What only git can tell of a workspace; it writes nothing, and where it fails it tells nothing."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_READ_ONLY: Final = (
    "--no-optional-locks",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
)
_SECONDS: Final = 30


def tracked_but_ignored(folder: Path) -> tuple[str, ...]:
    """Return the files beneath a folder that git tracks though its own rules ignore them."""
    told = _git(folder, "ls-files", "-ci", "--exclude-standard", "-z")
    return tuple(os.fsdecode(each) for each in told.split(b"\0") if each)


def excludes_file(folder: Path) -> Path:
    """Return the file of patterns that hold in all of the user's repositories."""
    told = _git(folder, "config", "-z", "--type=path", "--get", "core.excludesFile")
    if found := told.rstrip(b"\0"):
        return folder / os.fsdecode(found)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - Path.expanduser raises without a home
    return Path(home) / "git" / "ignore"


def _git(folder: Path, *arguments: str) -> bytes:
    git = shutil.which("git")
    if git is None:
        return b""
    environment = {name: each for name, each in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [git, *_READ_ONLY, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout if done.returncode == 0 else b""
