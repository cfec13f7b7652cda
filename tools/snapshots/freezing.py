"""Reading the ignore rules of a workspace as they are now."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from daruma.state.data_dir import data_dir
from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import directory_opened
from daruma.tools.snapshots.git_asked import excludes_file, tracked_but_ignored
from daruma.tools.snapshots.git_folder import excluded_in, patterns_in, repository_above
from daruma.tools.snapshots.ignored import Rules
from daruma.tools.snapshots.patterns import lines_of
from daruma.tools.snapshots.scopes import Scopes, Source, latin


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
