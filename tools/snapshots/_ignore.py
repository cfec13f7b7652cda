"""Reading the ignore rules of a workspace as they are now, by its files, and git's index."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from daruma.state.data_dir import data_dir
from daruma.tools.commands import CannotRun, run_git
from daruma.tools.files import Parts, common_folder, content_of, read_index, repository_above
from daruma.tools.snapshots._ignore_patterns import Rules, Scopes, Source, latin, lines_of
from daruma.tools.snapshots._outcome import directory_opened

# --- The patterns that git reads outside of ignore files; git itself is not run in a workspace.

_OF_THE_USER: Final = ("config", "-z", "--type=path", "--get", "core.excludesFile")
_OF_A_FILE: Final = ("config", "--file", "-", "--no-includes", *_OF_THE_USER[1:])


def patterns_in(path: Path, folder: int | None = None) -> tuple[str, ...]:
    """Return the patterns of a file; none where it is not there, no file, or may not be read."""
    return lines_of(content_of(path, folder))


def excluded_in(repository: Path) -> tuple[str, ...]:
    """Return the patterns of a repository's ``info/exclude``."""
    return patterns_in(common_folder(repository / ".git") / "info" / "exclude")


def excludes_file(folder: Path) -> Path:
    """Return the file of patterns that the repository around a folder names, else the user's own.

    The repository's settings are given to git as a text, of which nothing is included.
    """
    repository = repository_above(folder)
    settings = content_of(common_folder(repository / ".git") / "config") if repository else b""
    own = b"excludesfile" in settings.lower()
    if found := (own and _told(*_OF_A_FILE, data=settings)) or _told(*_OF_THE_USER):
        return folder / os.fsdecode(found)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - Path.expanduser raises without a home
    return Path(home) / "git" / "ignore"


def _told(*arguments: str, data: bytes = b"") -> bytes:
    try:
        done = run_git(*arguments, folder=Path("/"), data=data, own_settings=True)
    except CannotRun:
        return b""
    return done.stdout.rstrip(b"\0") if done.returncode == 0 else b""


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
    tracked = frozenset(each for each in freezing.tracked if scopes.ignored(each))
    return Rules(tuple(scopes.sources), frozenset(freezing.found), tracked)


class _Freezing:
    """One look for rules, directory by directory, into none that is ignored."""

    def __init__(self, top: int, workspace: Path) -> None:
        self.top = top
        self.workspace = workspace
        self.everywhere = patterns_in(excludes_file(workspace))
        self.scopes = Scopes()
        self.found: set[str] = set()
        self.tracked: set[str] = set()

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
            inside = self.workspace.relative_to(repository)
            self._index(repository, "".join(f"{part}/" for part in inside.parts))

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
        self._index(folder, "", "/".join(path) + "/")

    def _index(self, repository: Path, lead: str, base: str = "") -> None:
        """Note what is tracked beneath ``lead``: folders with such files are looked into."""
        files = (each for each in read_index(repository / ".git").files if each.startswith(lead))
        found = {base + each.removeprefix(lead) for each in files}
        self.scopes.look_into(found)
        self.tracked |= found


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
