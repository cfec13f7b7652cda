"""The parts of repositories that git runs later, outside: kept from commands, and made harmless
after them.
"""

import fcntl
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from daruma.tools.errors import CommandRefused
from daruma.tools.files import (
    DIRECTORY,
    Index,
    best_opener,
    closing_fd,
    common_folder,
    content_of,
    is_repository,
    own_folder,
    put_entry,
    read_index,
    repository_above,
)
from daruma.tools.sandbox._mounts import Pinned, Pins

# --- Files that keep a name taken, while commands run, by which git would read another
# configuration.
#
# What is not there can not be made read-only. Each says nothing new to git, so that one which is
# left because Daruma was killed does no harm; the next command takes it for its own and removes it.

CONTENT: Final = {"commondir": b".\n", "config.worktree": b""}
"""The repository's own folder, and no settings."""


@contextmanager
def placeholders(git: int, names: tuple[str, ...] = tuple(CONTENT)) -> Iterator[None]:
    """Make what is missing in an open folder; the last command that uses it removes it.

    Commands at once, also of other processes, know of each other by a lock on the folder.
    """
    lock = os.open(f"/proc/self/fd/{git}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for name in names:
            with (
                suppress(FileExistsError, PermissionError),
                os.fdopen(os.open(name, flags, 0o644, dir_fd=lock), "wb") as file,
            ):
                file.write(CONTENT[name])
        yield
    finally:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            for name in names:
                with suppress(OSError):  # there is none, or it is no file of ours
                    with os.fdopen(os.open(name, flags, dir_fd=lock), "rb") as file:
                        ours = file.read(16) == CONTENT[name]
                    if ours:
                        os.unlink(name, dir_fd=lock)
        os.close(lock)


# --- The parts of a repository that run code later, outside: hooks, configuration, attributes.

_CONTROL: Final = ("hooks", "config", "config.worktree", "info", "commondir")
_OF_A_WORKTREE: Final = ("commondir", "gitdir", "config.worktree")


@contextmanager
def git_control(
    workspace: Path, repositories: Iterable[Path], mounted: Iterable[Path] = ()
) -> Iterator[list[Pinned]]:
    """Yield what has to be mounted, in order; the descriptors live as long as the block.

    Each of ``repositories``, and of the folders on the way to them and to what else is ``mounted``
    in the workspace, is among it, writable: so it can not be moved aside and another put in its
    place. A folder for hooks is made where there is none. A repository whose control files are
    links can only be read, for a link can not be protected. Raises
    :class:`~daruma.tools.errors.CommandRefused` if something can not be protected.
    """
    with ExitStack() as stack:
        pins = Pins(workspace, stack)
        closed = [each.relative_to(workspace) for each in mounted]
        try:
            for at in repositories:
                if not any(at.is_relative_to(each) for each in closed):
                    _repository(pins, at, stack)
            for place in closed:
                pins.around(place)
        except OSError as error:
            raise CommandRefused(f"a repository can not be protected: {error}") from error
        yield pins.all()


def _repository(pins: Pins, at: Path, stack: ExitStack) -> None:
    git = pins.pin(at, writable=True)
    if git is None:
        return
    if not stat.S_ISDIR(os.fstat(git).st_mode) or any(_is_link(git, name) for name in _CONTROL):
        pins.pin(at, writable=False)
        return
    with suppress(FileExistsError, PermissionError):
        os.mkdir("hooks", dir_fd=git)
    stack.enter_context(placeholders(git))
    for name in _CONTROL:
        pins.pin(at / name, writable=False)
    for worktree in _listed(git, "worktrees"):
        place = at / "worktrees" / worktree
        own = pins.pin(place, writable=True)
        if own is not None and stat.S_ISDIR(os.fstat(own).st_mode):
            stack.enter_context(placeholders(own, ("config.worktree",)))
            for name in _OF_A_WORKTREE:
                pins.pin(place / name, writable=False)


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _listed(folder: int, name: str) -> list[str]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(f"/proc/self/fd/{folder}/{name}", flags)
    except (FileNotFoundError, NotADirectoryError):
        return []
    with closing_fd(fd), os.scandir(fd) as entries:
        return sorted(each.name for each in entries)


# --- Finding the git repositories in a workspace: those in work, bare ones, submodules, worktrees.

FIRST_LOOK: Final = 20_000
"""How many folders are looked into, from the top down, before the first command: about 0.3 s."""

LOOKED_AT: Final = 200
"""How many before each further command, which may have made many to hide those that count."""

MOST: Final = 32
"""How many repositories are protected at most: with so many a command starts in 0.2 s."""

_NOT_LOOKED_INTO: Final = frozenset({".git", "node_modules", "__pycache__"})


class Repositories:
    """Which repositories there are; those that were there at first are not forgotten."""

    def __init__(self) -> None:
        self._first: dict[Path, tuple[Path, ...]] = {}

    def of(self, workspace: Path) -> tuple[Path, ...]:
        """Return the folders (or files) that git keeps its own in, relative to the workspace."""
        first = self._first.get(workspace)
        if first is None:
            first = tuple(islice(find_repositories(workspace, FIRST_LOOK), MOST))
            return self._first.setdefault(workspace, first)
        now = islice(find_repositories(workspace, LOOKED_AT), MOST)
        return tuple(dict.fromkeys([*first, *now]))


def find_repositories(workspace: Path, most: int) -> Iterator[Path]:
    """Yield where git keeps its own, relative to the workspace; ``most`` folders are looked into.

    They are folders, or files that name one; the nearest come first.
    """
    for at, names in _folders(workspace, "", most):
        if is_repository(names):
            yield Path(at)
        if ".git" in names:
            yield Path(at, ".git")
            if names[".git"]:  # the repositories of submodules lie in that of the one around them
                modules = f"{at}/.git/modules".lstrip("/")
                for inner, within in _folders(workspace, modules, LOOKED_AT):
                    if is_repository(within):
                        yield Path(inner)


def _folders(workspace: Path, top: str, most: int) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield folders, the nearest first, with what is in each and whether that is a folder.

    Paths are plain texts: this is done around each command, and a ``Path`` costs as much as a look.
    """
    waiting, lead = deque([top]), f"{workspace}/"
    while waiting and most:
        at, most = waiting.popleft(), most - 1
        names = _names(lead + at)
        yield at, names
        folders = [name for name, folder in names.items() if folder]
        before = f"{at}/" if at else ""
        waiting += [before + name for name in sorted(folders) if name not in _NOT_LOOKED_INTO]


def _names(folder: str) -> dict[str, bool]:
    try:
        with os.scandir(folder) as entries:
            return {each.name: each.is_dir(follow_symlinks=False) for each in entries}
    except OSError:
        return {}


# --- Settings that run nothing.
#
# A command can make a repository, or, where the level can not keep it from that, change one that
# was there. Whoever walks into it afterwards, a person's own ``git status`` among them, would run
# its settings and hooks (SE-05). So after each command the settings of new repositories are reduced
# to those that run nothing, their hooks are no programs any more, what was there is put back, and
# all of it is told.

_HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "core": frozenset({
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase",
        "precomposeunicode", "symlinks", "autocrlf", "eol", "safecrlf", "worktree", "abbrev",
        "quotepath", "sharedrepository", "untrackedcache",
    }),
    "extensions": frozenset({"objectformat", "refstorage", "compatobjectformat", "noop"}),
    "remote": frozenset({"url", "pushurl", "fetch", "tagopt"}),
    "branch": frozenset({"remote", "merge", "rebase", "description"}),
    "user": frozenset({"name", "email"}),
    "submodule": frozenset({"url", "active", "branch", "path"}),
    "init": frozenset({"defaultbranch"}),
    "pull": frozenset({"rebase", "ff"}),
    "push": frozenset({"default", "autosetupremote"}),
    "advice": frozenset({"detachedhead", "defaultbranchname"}),
}  # fmt: skip
"""By section. What is not here is taken out: it names a program, or has git read elsewhere."""

_SECTION: Final = re.compile(r'[ \t]*\[([A-Za-z0-9.-]+)(?:[ \t]+"[^"\\\n]*")?\][ \t]*')
_SETTING: Final = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=([^\\\x00-\x08\x0a-\x1f]*))?")


def harmless_settings(text: str) -> tuple[str, list[str]]:
    """Return settings of git without all that could run something, and the names left out.

    >>> harmless_settings('[core]\\n\\tbare = false\\n\\tfsmonitor = evil\\n')
    ('[core]\\n\\tbare = false\\n', ['core.fsmonitor'])
    """
    kept, left_out = list[str](), list[str]()
    section, within = "", ""
    for line in text.split("\n"):
        plain = line.removesuffix("\r")
        if not plain.strip() or plain.lstrip()[:1] in "#;":
            kept += [line] if plain.isprintable() and not plain.endswith("\\") else []
        elif found := _SECTION.fullmatch(plain):
            within = found[1].lower()
            section = within if within in _HARMLESS else ""
            kept += [line] * bool(section)
        elif section and _is_harmless(section, plain):
            kept.append(line)
        else:
            name = re.match(r"[ \t]*([A-Za-z][A-Za-z0-9-]{0,40})", plain)
            said = name[1] if name else "a line"
            left_out.append(f"{within[:40]}.{said}" if within else said)
    return "\n".join(kept), list(dict.fromkeys(left_out))


def _is_harmless(section: str, line: str) -> bool:
    found = _SETTING.fullmatch(line)
    if found is None or found[1].lower() not in _HARMLESS[section]:
        return False
    return not (found[1].lower().endswith("url") and "::" in (found[2] or ""))


# --- The files of a repository that decide what git runs, by a folder that is open.

Entry = tuple[int, int, bytes]
"""The mode of a file or link, its size, and what it holds or where it leads."""

Control = Mapping[str, Entry]

_FILES: Final = ("config", "config.worktree", "commondir", "info/attributes", "hooks")
_MOST_HOOKS: Final = 200
_UNREAD: Final[Entry] = (0, 0, b"")
"""What stands for each hook beyond so many: it is known by its name alone."""


@contextmanager
def _opened(workspace: Path, at: Path) -> Iterator[int | None]:
    """Open a folder in the workspace, following no link; None for anything else."""
    with ExitStack() as stack:
        root = stack.enter_context(closing_fd(os.open(workspace, DIRECTORY | os.O_CLOEXEC)))
        fd = None
        with suppress(OSError):
            fd = best_opener().open(root, at.parts, DIRECTORY, links=False)
            stack.callback(os.close, fd)
        yield fd


def _entry(folder: int, name: str) -> Entry | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        mode, size = status.st_mode, status.st_size
        if stat.S_ISLNK(mode):
            return mode, size, os.fsencode(os.readlink(name, dir_fd=folder))
    except OSError:
        return None
    return (mode, size, content_of(Path(name), folder)) if stat.S_ISREG(mode) else None


def _listed_beneath(folder: int, name: str) -> list[str]:
    try:
        fd = os.open(name, DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return []
    with closing_fd(fd):
        return sorted(os.listdir(fd))  # noqa: PTH208 - an open folder


def control_of(workspace: Path, at: Path) -> Control:
    """Return what decides what git runs in a repository; empty for one that is no folder."""
    with _opened(workspace, at) as git:
        if git is None:
            with _opened(workspace, at.parent) as folder:
                entry = None if folder is None else _entry(folder, at.name)
            return {"": entry} if entry else {}
        listed = _listed_beneath(git, "hooks")
        hooks = [f"hooks/{each}" for each in listed if not each.endswith(".sample")]
        worktrees = _listed_beneath(git, "worktrees")
        of_worktrees = [f"worktrees/{each}/{name}" for each in worktrees for name in _OF_A_WORKTREE]
        names = (*_FILES, *hooks[:_MOST_HOOKS], *of_worktrees)
        unread = dict.fromkeys(hooks[_MOST_HOOKS:], _UNREAD)
        found = {**unread, **{name: _entry(git, name) for name in names}}
    kept = CONTENT.items()
    return {
        name: entry
        for name, entry in found.items()
        if entry and (name.rpartition("/")[2], entry[2]) not in kept  # one of our placeholders
    }


def put_back(workspace: Path, at: Path, before: Control) -> list[str]:
    """Give the control files of a repository what they held before; return what had changed."""
    now = control_of(workspace, at)
    changed = [
        name
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
        and not (name.startswith("worktrees/") and name not in before)  # a new one is told apart
    ]
    if not now or not changed:
        return []
    if "" in changed:  # a file or link now, or before: then a folder loses all that git would run
        with _opened(workspace, at.parent) as around:
            if around is not None:
                _put(around, at.name, before.get(""))
    with _opened(workspace, at) as git:
        for name in sorted({*changed} - {""}):
            if git is not None:
                _put(git, name, before.get(name))
    return [name or ".git" for name in changed]


def _put(git: int, name: str, entry: Entry | None) -> None:
    folder, _, last = name.rpartition("/")
    with suppress(OSError):
        flags = DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with closing_fd(os.open(folder or ".", flags, dir_fd=git)) as fd:
            if entry is None or stat.S_ISLNK(entry[0]):
                os.unlink(last, dir_fd=fd)
            if entry and stat.S_ISLNK(entry[0]):
                os.symlink(entry[2], last, dir_fd=fd)
            elif entry:
                put_entry(fd, last, entry[2], stat.S_IMODE(entry[0]))


def make_harmless(workspace: Path, at: Path) -> list[str]:
    """Take out of a repository's folder all that git would run; return the names of that."""
    with _opened(workspace, at) as git:
        if git is None:
            return []
        left_out: list[str] = []
        for name in ("config", "config.worktree"):
            entry = _entry(git, name)
            if entry is None:
                continue
            mode, size, data = entry
            data = b"" if stat.S_ISLNK(mode) else data
            text, names = harmless_settings(data.decode("utf-8", "surrogateescape"))
            kept = text.encode("utf-8", "surrogateescape")
            if kept != data or len(data) != size:  # what is too large, or a link, was not read
                put_entry(git, name, kept, 0o644)
                left_out += names or [name]
        if (entry := _entry(git, "commondir")) and entry[1] > len(entry[2]):
            os.unlink("commondir", dir_fd=git)  # too long to be read: who knows where it leads
            left_out.append("commondir")
        return left_out + _hooks(git)


def _hooks(git: int) -> list[str]:
    entry = _entry(git, "hooks")
    if entry and stat.S_ISLNK(entry[0]):
        os.unlink("hooks", dir_fd=git)
        return ["hooks"]
    found = []
    for name in _listed_beneath(git, "hooks"):
        path = f"hooks/{name}"
        hook = _entry(git, path)
        if hook is None or name.endswith(".sample"):
            continue
        if stat.S_ISLNK(hook[0]):
            os.unlink(path, dir_fd=git)
        elif hook[0] & 0o111:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            with closing_fd(os.open(path, flags, dir_fd=git)) as fd:
                if stat.S_ISREG(mode := os.fstat(fd).st_mode):
                    Path(f"/proc/self/fd/{fd}").chmod(stat.S_IMODE(mode) & ~0o111)
        else:
            continue
        found.append(path)
    return found


# --- The repositories of a workspace before and after each command.


@dataclass
class Sweep:
    """What is known of the repositories in workspaces; commands may run side by side in one."""

    _known: dict[Path, dict[Path, Control]] = field(default_factory=dict)
    _unread: dict[Path, set[Path]] = field(default_factory=dict)
    _running: dict[Path, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def around(self, workspace: Path, notes: list[str]) -> Iterator[None]:
        """Look before a command and after it; ``notes`` are given what there is to tell."""
        with self._lock:
            if not self._running.get(workspace):
                first = workspace not in self._known
                known = self._known.get(workspace, {})
                found = {*_all(workspace, FIRST_LOOK if first else LOOKED_AT), *known}
                found |= {place for at in found for place in _places(workspace, at, ())}
                there = [at for at in found if os.path.lexists(workspace / at)]
                self._known[workspace] = {at: control_of(workspace, at) for at in there}
                self._unread[workspace] = {at for at in there if not _index(workspace / at).whole}
            self._running[workspace] = self._running.get(workspace, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._running[workspace] -= 1
                with suppress(OSError):  # the workspace is gone
                    notes += self._swept(workspace)

    def _swept(self, workspace: Path) -> list[str]:
        known = self._known[workspace]
        told, new = [], list[str]()
        for at in [*known, *_all(workspace, FIRST_LOOK)]:
            if at in known:
                if changed := put_back(workspace, at, known[at]):
                    told.append(f"{at}: put back {', '.join(changed[:5])}")
                continue
            for place in _places(workspace, at, known):
                left_out = make_harmless(workspace, place)
                known[place] = control_of(workspace, place)
                out = f" (taken out: {', '.join(left_out[:5])})" if left_out else ""
                new.append(f"{place}{out}")
            known.setdefault(at, control_of(workspace, at))
        odd = [at for at in {**known} if at not in self._unread[workspace]]
        aside = [str(at) for at in odd if _set_aside(workspace, at)]
        return [
            *_lines("git's control files were changed, which commands may not", told),
            *_lines("the command left repositories behind; look before you run git in them", new),
            *_lines(f"the command left an index that git never writes: it is now {_ASIDE}", aside),
        ]


_ASIDE: Final = "index.unread"


def _set_aside(workspace: Path, at: Path) -> bool:
    """Rename an index that may name more than what was read of it, so that git reads none of it."""
    own = Path(os.path.realpath(own_folder(workspace / at)))
    if not own.is_relative_to(workspace) or _index(workspace / at).whole:
        return False
    with _opened(workspace, own.relative_to(workspace)) as git, suppress(OSError):
        if git is not None:
            os.rename("index", _ASIDE, src_dir_fd=git, dst_dir_fd=git)
            return True
    return False


def _lines(what: str, found: list[str]) -> list[str]:
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return [f"{what}: {'; '.join(found[:3])}{more}"] if found else []


def _places(workspace: Path, at: Path, known: Iterable[Path]) -> list[Path]:
    """Return the folders in the workspace that git reads for a new repository, but known ones."""
    git = workspace / at
    real = {Path(os.path.realpath(each)) for each in (git, own_folder(git), common_folder(git))}
    ours = {Path(os.path.realpath(workspace / each)) for each in known}
    inside = (each for each in real - ours if each.is_relative_to(workspace) and each.is_dir())
    return sorted(each.relative_to(workspace) for each in inside)


def _all(workspace: Path, most: int) -> list[Path]:
    """Return all repositories that are found, and those that an index takes for submodules."""
    found = dict.fromkeys(find_repositories(workspace, most))
    above = repository_above(workspace)
    if above and above != workspace:
        lead = f"{workspace.relative_to(above)}/"
        inside = (each for each in _index(above / ".git").repositories if each.startswith(lead))
        found |= dict.fromkeys(Path(each.removeprefix(lead), ".git") for each in inside)
    waiting = list(found)
    while waiting:
        at = waiting.pop()
        if at.name != ".git":
            continue
        for link in _index(workspace / at).repositories:
            inner = at.parent / link / ".git"
            if inner not in found and os.path.lexists(workspace / inner):
                found[inner] = None
                waiting.append(inner)
    return [each for each in found if os.path.lexists(workspace / each)]


def _index(git: Path) -> Index:
    try:
        now = (own_folder(git) / "index").stat()
    except (OSError, ValueError):
        return Index()
    return _read(git, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@lru_cache(maxsize=8)
def _read(git: Path, _changed: tuple[int, ...]) -> Index:
    return read_index(git)
