"""Programs of the host: the one module that finds and starts them (SE-01).

What Daruma runs outside of the sandbox is never chosen by a workspace. A program is looked for
where no workspace and no sandboxed command can write, is started by its whole path, and gets an
environment in which it looks for others in the same places. Git is run on files of ours alone,
never in a repository of the workspace: those are read without it (``tools/files/_repository.py``).
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import Any, Final, TypeAlias

from daruma.state.data_dir import data_dir

# --- Where programs of the host are looked for.

SYSTEM_PATHS: Final = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin")
"""Where systems keep programs: looked at before all that ``PATH`` names."""

OF_PROJECTS: Final = frozenset({".venv", "venv", ".env", "env", "node_modules", ".direnv"})
"""Folders that hold the programs of a project, by name."""


def search_path(workspace: Path | None = None, path: str | None = None) -> list[str]:
    """Return the places of ``PATH`` where programs of the host are looked for, the system's first.

    A ``path`` that somebody set for a program goes in its place.

    Left out is what a command can write, or could at another time: what is relative or
    empty, the workspace and what lies in it, in the folders around it (up to the home folder) or in
    Daruma's data, environments of projects other than Daruma's own, and what everybody may write.
    Without a ``workspace`` it is the current folder.
    """
    return [*_searched(_here() if workspace is None else _real(workspace), path)]


def _searched(here: Path | None, path: str | None) -> Iterator[str]:
    """Yield them one by one: most programs are found in the first, and each takes many looks."""
    given = (path or os.environ.get("PATH", os.defpath)).split(os.pathsep)
    system = [place for place in SYSTEM_PATHS if place in given]
    writable = _writable(here)
    for place in dict.fromkeys([*system, *given]):
        around = place not in system and _is_around(Path(place), here)
        if not around and _is_safe(Path(place), writable):
            yield place


def unsearched_places(workspace: Path | None = None) -> list[str]:
    """Return the places of ``PATH`` that are there, and where no program of the host is looked for.

    A person's own shell does look there, and runs what a command has left.
    """
    searched = search_path(workspace)
    given = dict.fromkeys(os.environ.get("PATH", os.defpath).split(os.pathsep))
    return [each or "." for each in given if each not in searched and Path(each).is_dir()]


def find_program(name: str, workspace: Path | None = None, path: str | None = None) -> str | None:
    """Return the whole path of a program that may be run outside of the sandbox, or None.

    A ``name`` with a slash has to be absolute. One that lies in the workspace, or leads there, is
    none: the workspace's own programs are run in the sandbox only. Daruma's own Python is one
    wherever it lies, for no tool can write it (SE-05).
    """
    here = _here() if workspace is None else _real(workspace)
    places = _searched(here, path) if "/" not in name else ["/"] * Path(name).is_absolute()
    for place in places:
        found = shutil.which(name, path=place)
        if found and (found == sys.executable or not _lies_in(Path(found), _writable(here))):
            return found
    return None


def find_in(path: str, name: str) -> str | None:
    """Return where a program is found in places that the caller answers for.

    With the ``PATH`` of commands in the sandbox it says what is there: never start that outside.
    """
    return shutil.which(name, path=path)


def _here() -> Path | None:
    with suppress(OSError):  # the current folder is gone
        return Path.cwd()
    return None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _writable(here: Path | None) -> list[Path]:
    """Return the folders in which commands write: worktrees of team members are among the data."""
    return [_real(data_dir()), *([here] if here and here != Path("/") else [])]


def _lies_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(each.is_relative_to(folder) for each in {path, _real(path)} for folder in folders)


def _is_around(place: Path, here: Path | None) -> bool:
    """Say whether a place lies in a folder around the workspace that may be one itself."""
    if here is None or _is_own(place):
        return False
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.expanduser raises without a home
    deep = (each for each in here.parents if len(each.parts) > 2)
    return _lies_in(place, [each for each in deep if not home.is_relative_to(each)])


def _is_safe(place: Path, writable: Sequence[Path]) -> bool:
    if not place.is_absolute() or _lies_in(place, writable):
        return False
    real = _real(place)
    with suppress(OSError):
        mode = real.stat().st_mode
        if not stat.S_ISDIR(mode) or mode & stat.S_IWOTH:
            return False
        of_project = OF_PROJECTS & {*place.parts, *real.parts}
        return _is_own(place) or not (of_project or (real.parent / "pyvenv.cfg").exists())
    return False


def _is_own(place: Path) -> bool:
    """Say whether it is the folder of Daruma's own Python: no tool may write that (SE-05)."""
    return _real(place) in {_real(Path(sys.executable).parent), _real(Path(sys.prefix) / "bin")}


# --- Starting them.

CompletedProgram: TypeAlias = "subprocess.CompletedProcess[bytes]"
Started: TypeAlias = "subprocess.Popen[bytes]"

PIPE: Final = subprocess.PIPE
DEVNULL: Final = subprocess.DEVNULL
STDOUT: Final = subprocess.STDOUT
"""For standard error: where standard output goes."""

CannotRun: Final = (OSError, subprocess.SubprocessError)
"""What is raised where a program can not be started, fails where that counts, or takes too long."""

TakesTooLong: TypeAlias = subprocess.TimeoutExpired


def run_program(argv: Sequence[str], **how: Any) -> CompletedProgram:
    """Run a program to its end; ``how`` is as for :func:`subprocess.run`."""
    return subprocess.run(_by_whole_path(argv), check=False, **how)


def start_program(argv: Sequence[str], **how: Any) -> Started:
    """Start a program; ``how`` is as for :class:`subprocess.Popen`."""
    return subprocess.Popen(_by_whole_path(argv), **how)


def ask_program(
    argv: Sequence[str],
    body: bytes,
    timeout: float,
    begun: Callable[[Started], None] | None = None,
    **how: Any,
) -> int:
    """Run a program on an input, and return its exit code.

    One that takes too long is ended, with all that it has started. ``begun`` is told of it, for
    whoever has it end before. ``how`` is as for :class:`subprocess.Popen`.
    """
    with start_program(argv, stdin=PIPE, cwd="/", start_new_session=True, **how) as running:
        if begun:
            begun(running)
        try:
            running.communicate(body, timeout)
        except BaseException:
            end_program(running)
            raise
    return running.returncode


def end_program(running: Started) -> None:
    """Kill a program that was asked, with all that it has started."""
    if running.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)


def host_environment(workspace: Path | None = None) -> dict[str, str]:
    """Return Daruma's own variables with a ``PATH`` that no workspace has a say in."""
    return {**os.environ, "PATH": _joined(search_path(workspace))}


def _by_whole_path(argv: Sequence[str]) -> list[str]:
    program = str(argv[0])
    if Path(program).is_absolute():
        return [*map(str, argv)]
    found = find_program(program)
    if found is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), program)
    return [found, *map(str, argv[1:])]


def _joined(places: Sequence[str]) -> str:
    return os.pathsep.join(places) or os.devnull  # what is empty stands for the default


# --- Git, for files of ours: it runs nothing else, and fetches nothing.

SECONDS: Final = 60.0

_SETTINGS: Final = {
    "core.attributesFile": os.devnull,
    "core.editor": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "gpg.program": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}

_VARIABLES: Final = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "GIT_TERMINAL_PROMPT": "0",
}

_NO_SETTINGS: Final = {
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git_environment(folder: Path, *, own_settings: bool = False) -> dict[str, str]:
    """Return all of git's variables; none of this process's own ``GIT_*`` is passed on.

    No configuration counts but that of a repository in ``folder``; with ``own_settings`` the
    user's does. Repositories above ``folder`` are not looked for.
    """
    names = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL")
    own = {name: os.environ[name] for name in names if name in os.environ}
    ceiling = {"PATH": _joined(search_path(folder)), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return {**_VARIABLES, **ceiling, **(own if own_settings else _NO_SETTINGS)}


def run_git(
    *arguments: str,
    folder: Path,
    data: bytes = b"",
    seconds: float = SECONDS,
    own_settings: bool = False,
) -> CompletedProgram:
    """Run git in a folder that no command can write, and give it ``data`` to read.

    Raises :class:`FileNotFoundError` without git, and one of ``CannotRun``.
    """
    git = find_program("git", folder)
    if git is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), "git")
    settings = (word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}"))
    return run_program(
        [git, "--no-pager", "--no-optional-locks", *settings, *arguments],
        cwd=folder,
        env=git_environment(folder, own_settings=own_settings),
        input=data,
        capture_output=True,
        timeout=seconds,
    )
