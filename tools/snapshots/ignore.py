"""Reading the ignore rules of a workspace as they are now, by its files and by git."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from daruma.state.data_dir import data_dir
from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.ignore_patterns import Rules, Scopes, Source, latin, lines_of
from daruma.tools.snapshots.outcome import directory_opened

# --- Finding a repository's own folder, and the patterns that git reads outside of the files.

_LARGEST: Final = 1024 * 1024
"""Bytes; git's own files of patterns and pointers are never near that."""


def repository_above(workspace: Path) -> Path | None:
    """Return the nearest folder, from the workspace upwards, that holds a ``.git``."""
    return next((each for each in (workspace, *workspace.parents) if is_there(each / ".git")), None)


def excluded_in(repository: Path) -> tuple[str, ...]:
    """Return the patterns of a repository's ``info/exclude``."""
    return patterns_in(_common_folder(repository / ".git") / "info" / "exclude")


def patterns_in(path: Path, folder: int | None = None) -> tuple[str, ...]:
    """Return the patterns of a file; none where it is not there, no file, or may not be read."""
    return lines_of(_content(path, folder))


def is_there(path: Path) -> bool:
    """Say whether a name is there, also where it may not be looked at."""
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _common_folder(git: Path) -> Path:
    """Return where a worktree's or submodule's repository keeps what all its worktrees share."""
    pointer = _content(git).strip()
    own = git.parent / os.fsdecode(pointer[8:]) if pointer.startswith(b"gitdir: ") else git
    common = _content(own / "commondir").strip()
    return own / os.fsdecode(common) if common else own


def _content(path: Path, folder: int | None = None) -> bytes:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | (os.O_NOFOLLOW if folder is not None else 0), dir_fd=folder)
    except (OSError, ValueError):
        return b""
    try:
        status = os.fstat(fd)
        regular = stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST
        return os.read(fd, _LARGEST) if regular else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


# --- What only git can tell of a workspace; it writes nothing, and where it fails it tells nothing.

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


# --- Reading the ignore rules of a workspace as they are now.


def frozen(top: int, workspace: Path, exclude: Sequence[str] = ()) -> Rules:
    """Return the rules that hold beneath an open workspace now.

    They are those of git: ``core.excludesFile``, ``info/exclude``, every ``.gitignore``; they hold
    as well where there is no repository. What a repository around the workspace says does not
    count where it ignores the whole workspace. ``exclude`` are lines as in a ``.gitignore`` at the
    root; Daruma's own data is always left alone.
    """
    freezing = _Freezing(top, Path(os.path.realpath(workspace)))
    freezing.outer()
    lines = lines_of(os.fsencode("\n".join(exclude)))
    if last := (*lines, *freezing.own_data()):
        freezing.scopes.add(Source("", last, last=True))
    freezing.inner()
    scopes = freezing.scopes
    return Rules(tuple(scopes.sources), frozenset(freezing.found), frozenset(scopes.tracked))


class _Freezing:
    """One look for rules, directory by directory, into none that is ignored."""

    def __init__(self, top: int, workspace: Path) -> None:
        self.top = top
        self.workspace = workspace
        self.everywhere = patterns_in(excludes_file(workspace))
        self.scopes = Scopes()
        self.found: set[str] = set()

    def outer(self) -> None:
        """Add what holds in all of the workspace."""
        repository = repository_above(self.workspace)
        sources = [Source("", self.everywhere, _lead(self.workspace, repository))]
        if repository:
            sources += _above(self.workspace, repository)
        if any(_ignores_all(each) for each in sources):
            sources, repository = [Source("", self.everywhere)], None
        for source in sources:
            if source.lines:
                self.scopes.add(source)
        if repository:
            self.scopes.track(tracked_but_ignored(self.workspace))

    def own_data(self) -> tuple[str, ...]:
        """Return the pattern of Daruma's data where it lies inside of the workspace."""
        data = Path(os.path.realpath(data_dir()))
        if data == self.workspace or not data.is_relative_to(self.workspace):
            return ()
        inside = latin(os.fspath(data.relative_to(self.workspace)))
        return ("/" + re.sub(r"([*?\[\\ ])", r"\\\1", inside) + "/",)

    def inner(self) -> None:
        """Add what directories of the workspace say."""
        waiting: list[Parts] = [()]
        while waiting:
            path = waiting.pop()
            try:
                waiting += self._directory(path)
            except OSError:
                continue

    def _directory(self, path: Parts) -> list[Parts]:
        with directory_opened(self.top, path) as fd:
            with os.scandir(fd) as listed:
                kinds = {each.name: each.is_dir(follow_symlinks=False) for each in listed}
            if ".git" in kinds:
                self._repository(path)
            if kinds.get(".gitignore") is False and (lines := patterns_in(Path(".gitignore"), fd)):
                self.scopes.add(Source(latin("/".join(path)), lines))
        inside = ((*path, name) for name, directory in kinds.items() if directory)
        return [each for each in inside if self._looked_into(each)]

    def _looked_into(self, path: Parts) -> bool:
        return path[-1] != ".git" and not self.scopes.outside(path, directory=True)

    def _repository(self, path: Parts) -> None:
        self.found.add("/".join((*path, ".git")))
        if not path:
            return  # what it says holds everywhere, and is known
        folder = self.workspace.joinpath(*path)
        base = latin("/".join(path))
        self.scopes.add(Source(base, self.everywhere, alone=True))
        self.scopes.add(Source(base, excluded_in(folder)))
        self.scopes.track("/".join((*path, each)) for each in tracked_but_ignored(folder))


def _above(workspace: Path, repository: Path) -> list[Source]:
    """Return what the repository says, and the directories between it and the workspace."""
    sources = [Source("", excluded_in(repository), _lead(workspace, repository))]
    between = [each for each in reversed(workspace.parents) if each.is_relative_to(repository)]
    return sources + [
        Source("", patterns_in(each / ".gitignore"), _lead(workspace, each)) for each in between
    ]


def _lead(workspace: Path, folder: Path | None) -> str:
    if folder is None or folder == workspace:
        return ""
    return latin(os.fspath(workspace.relative_to(folder))) + "/"


def _ignores_all(source: Source) -> bool:
    """Say whether patterns above the workspace ignore it, or a directory that it lies in."""
    parts = source.lead.rstrip("/").split("/") if source.lead else []
    above = ("/".join(parts[:size]) for size in range(1, len(parts) + 1))
    return any(source.patterns.verdict(each, directory=True) for each in above)
