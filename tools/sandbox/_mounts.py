"""Which places of a host commands see, and how bubblewrap is told to hide, show and open them."""

import os
import pwd
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from daruma.state.data_dir import data_dir
from daruma.tools.errors import CommandRefused
from daruma.tools.files import own_in
from daruma.tools.text import without_keys

# --- The places of a host that matter to a sandbox: what is secret, and where toolchains live.

SECRET: Final = (
    "/home", "/root", "/run", "/tmp", "/var/tmp", "/dev/shm", "/mnt", "/media", "/srv",  # noqa: S108
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/var/backups",
    "/var/mail", "/var/spool", "/var/log",
)  # fmt: skip
"""Hidden from every command."""

TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108
"""Of these, what every command has for itself, empty and writable."""

CREDENTIALS: Final = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".config", ".netrc", ".pypirc",
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".git-credentials", ".gitconfig", ".pgpass", ".my.cnf",
    ".password-store", ".vault-token", ".terraform.d", ".terraformrc", ".boto", ".s3cfg",
    ".mozilla", ".thunderbird", ".claude", ".claude.json", ".codex", ".gemini",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".local/share/keyrings",
    ".cache/huggingface/token", ".bash_history", ".zsh_history", ".python_history",
    ".psql_history",
)  # fmt: skip
"""Beneath a home folder: hidden even where the folder around them can be seen."""

TOOLCHAINS: Final = (
    ".pyenv", ".nvm", ".volta", ".fnm", ".asdf", ".rbenv", ".sdkman", ".jenv", ".cargo",
    ".rustup", "go", ".bun", ".deno", ".dotnet", ".juliaup", ".ghcup", ".opam", ".elan", ".poetry",
    ".npm-global", "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".local/bin",
    ".local/lib", ".local/pipx", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm",
    ".local/share/mise", ".local/share/fnm", ".m2/repository",
)  # fmt: skip
"""Beneath a home folder: shown, to be read only."""

SYSTEM: Final = frozenset({
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "nix", "gnu", "proc", "dev",
    "sys", "tmp",
})  # fmt: skip
"""What lies at the top of a disk and belongs to the system."""

POINTERS: Final = (
    "VIRTUAL_ENV", "CONDA_PREFIX", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR",
    "PYENV_ROOT", "JAVA_HOME",
)  # fmt: skip
"""Variables that name a toolchain's folder."""

SECRET_POINTERS: Final = (
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "NETRC",
    "NPM_CONFIG_USERCONFIG", "PGPASSFILE", "PIP_CONFIG_FILE", "SSH_AUTH_SOCK", "TMPDIR",
    "XAUTHORITY", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""Variables of Daruma's own environment that name secret places, wherever these are."""


# --- Which places commands must not see, and what of them a toolchain needs nevertheless.

_SHARED_PREFIXES: Final = (".local", "")  # beneath a home folder: they hold more than programs


@dataclass(frozen=True)
class Seen:
    """What lies before a command: places hidden, and places within them shown to be read."""

    hidden: tuple[Path, ...]
    shown: tuple[Path, ...]
    home: Path


def look_at_host(env: Mapping[str, str], *, system_only: bool = False) -> Seen:
    """Look at this host. ``env`` is that of the command: its ``PATH`` says what it needs.

    With ``system_only`` all is hidden that is not the system's own, wherever it lies.
    """
    given = tuple((name, env[name]) for name in (*POINTERS, "PATH") if name in env)
    named = os.pathsep.join(os.environ.get(name, "") for name in SECRET_POINTERS).split(os.pathsep)
    pointed = (Path(place) for place in named if Path(place).is_absolute())
    others = _not_for_everybody() if system_only else ()
    own = tuple(place for place in (data_dir(), *pointed, *others) if _exists(place))
    return _seen(given, _homes(), own)


def _not_for_everybody() -> Iterator[Path]:
    """Yield what is not the system's own, and what of its settings only its owner reads: root."""
    yield from (place for place in Path("/").iterdir() if place.name not in SYSTEM)
    waiting = [Path("/etc")]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in (each for each in entries if not each.is_symlink()):
                folder, mode = entry.is_dir(), entry.stat().st_mode
                if not mode & (stat.S_IXOTH if folder else stat.S_IROTH):
                    yield Path(entry.path)
                elif folder:
                    waiting.append(Path(entry.path))


def folders_shown_by_path(env: Mapping[str, str]) -> list[Path]:
    """Return the folders that commands can read for no other reason than that ``PATH`` names them.

    Of those that lie in each other it is the outermost.
    """
    known = look_at_host({name: value for name, value in env.items() if name != "PATH"}).shown
    found = [each for each in look_at_host(env).shown if not within(each, known)]
    return [each for each in found if not within(each, {*found} - {each})]


@lru_cache(maxsize=16)  # hundreds of looks at the disk, for an answer that hardly ever changes
def _seen(
    given: tuple[tuple[str, str], ...], homes: tuple[Path, ...], own: tuple[Path, ...]
) -> Seen:
    credentials = [home / name for home in homes for name in CREDENTIALS]
    places = [*map(Path, SECRET), *homes, *own]
    hidden = {Path(os.path.realpath(place)) for place in places if _exists(place)} - {Path("/")}
    needed = [place for place in _needed(dict(given), homes) if _exists(place)]
    shown = {place for place in needed if _harmless(place, hidden, credentials)}
    secret = {place for place in credentials if _exists(place)}
    return Seen(tuple(sorted(hidden | secret)), tuple(sorted(shown)), homes[0])


def within(path: Path, places: Iterable[Path]) -> bool:
    """Return whether a path is one of these places, or lies in one."""
    return any(path.is_relative_to(place) for place in places)


def _homes() -> tuple[Path, ...]:
    homes = [os.environ.get("HOME", "")]
    try:
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        homes.append("/root")
    real = [Path(os.path.realpath(home)) for home in homes if Path(home).is_absolute()]
    return tuple(dict.fromkeys(home for home in real if home != Path("/"))) or (Path("/root"),)


def _needed(env: Mapping[str, str], homes: tuple[Path, ...]) -> Iterator[Path]:
    yield from map(Path, (sys.prefix, sys.base_prefix))
    yield from (Path(env[name]) for name in POINTERS if Path(env.get(name, "")).is_absolute())
    yield from (home / name for home in homes for name in TOOLCHAINS)
    shared = {home / name for home in homes for name in _SHARED_PREFIXES}
    for entry in map(Path, env.get("PATH", "").split(os.pathsep)):
        yield entry
        if entry.name in {"bin", "sbin"} and entry.parent not in shared:
            yield entry.parent


def _harmless(place: Path, hidden: set[Path], credentials: list[Path]) -> bool:
    """Only what would be hidden is shown; a place that leads elsewhere counts for both."""
    real = Path(os.path.realpath(place))
    if not within(real, hidden) and not within(place, hidden):
        return False
    return not any(
        within(each, credentials) or any(secret.is_relative_to(each) for secret in hidden)
        for each in (place, real)
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


# --- What a command that nobody was asked about must not open in a workspace.

PRIVATE: Final = (
    ".env*", "*.env", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx", "*.tfvars", "*.tfstate", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
    ".htpasswd", "credentials", "credentials.*", "secrets.*", "service-account*.json",
    "client_secret*.json", "kubeconfig", ".secrets", ".vault_pass*", ".*_history",
    *(name for name in CREDENTIALS if "/" not in name),
)  # fmt: skip
"""Names of secrets, wherever they lie in a workspace."""

_COPY: Final = re.compile(r"(?:~|\.(?:bak|old|orig|save|swp))+")
_PUBLIC: Final = (".pub", ".example", ".sample", ".template", ".dist", ".py", ".pyi")
_PACKAGES: Final = frozenset({"site-packages", "node_modules"})
"""Folders of what others have published, with certificates that are no secrets."""

_PRIVATE: Final = re.compile("|".join(map(translate, PRIVATE)))
MOST_PRIVATE: Final = 500


def private_places(workspace: Path) -> dict[Path, int]:
    """Return the secrets of a workspace, and what lets out of it though it may not be written.

    Those are pipes and sockets: the kernel lets them be written to in a read-only mount, too. A
    folder that can not be looked through may hold any. Git would show what it has stored of a
    secret, and take one that is hidden for changed: what it has stored is hidden as well. With each
    stands its inode: what is put in its place is a new one, which nothing hides.

    Raises :class:`~daruma.tools.errors.CommandRefused` for more than can be hidden.
    """
    root = Path(os.path.realpath(workspace))
    found, waiting, repositories = dict[Path, None](), [(str(root), False)], list[Path]()
    while waiting:
        folder, packages = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if _is_private(entry, packages=packages):
                        found[Path(os.path.realpath(entry.path))] = None
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, packages or entry.name in _PACKAGES))
        except OSError:
            found[Path(folder)] = None
        if os.path.basename(folder) == ".git":  # noqa: PTH119 - of each folder there is
            repositories.append(Path(folder))
        if len(found) > MOST_PRIVATE:
            raise CommandRefused(f"{workspace} holds more than {MOST_PRIVATE} secrets and pipes")
    tracking = [each for each in repositories if _tracks(each, [*found])]
    found |= dict.fromkeys(each / name for each in tracking for name in _STORED)
    inside = (each for each in found if each != root and each.is_relative_to(root))
    places = {workspace / each.relative_to(root): _inode(each) for each in inside}
    return {each: inode for each, inode in places.items() if inode}


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:  # it is gone, or was never there
        return 0


_STORED: Final = ("config", "objects", "objects/pack")
"""What of a repository is hidden with the secrets that it tracks: without the first git says so."""


def _tracks(repository: Path, secrets: Sequence[Path]) -> bool:
    """Whether a secret may stand in a repository's index, where paths end with a zero byte."""
    try:
        index = (repository / "index").read_bytes()
    except OSError:
        return False
    around = repository.parent
    names = [os.fsencode(each.relative_to(around)) for each in secrets if within(each, [around])]
    compressed = index[4:8] > b"\0\0\0\3"  # paths are not whole
    return any(compressed or name + b"\0" in index or name + b"/" in index for name in names)


def _is_private(entry: "os.DirEntry[str]", *, packages: bool) -> bool:
    if not (entry.is_symlink() or entry.is_dir() or entry.is_file()):
        return True
    if entry.name == "config" and ".git" in Path(entry.path).parts[:-1]:
        try:
            text = Path(entry.path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        return without_keys(text) != text
    name = _COPY.sub("", entry.name.casefold())
    return not packages and not name.endswith(_PUBLIC) and bool(_PRIVATE.fullmatch(name))


# --- The order in which places are hidden, shown and opened: what lies deeper comes later.

Kind = Literal["hidden", "shown", "workspace", "private"]


def mounts(seen: Seen, workspace: Path, sockets: tuple[Path, ...] = ()) -> list[tuple[Path, Kind]]:
    """Return each place once, from the top down. ``sockets`` are hidden where they can be seen.

    In the workspace nothing is shown anew, for that would make it read-only: but what Daruma runs
    from, outside of the sandbox, is (SE-05).
    """
    kinds: dict[Path, Kind] = dict.fromkeys(seen.hidden, "hidden")
    for path in sockets:
        covered = within(path, seen.hidden) and not within(path, seen.shown)
        if not covered and not path.is_relative_to(workspace):
            kinds[path] = "hidden"
    kinds |= {path: "shown" for path in seen.shown if not path.is_relative_to(workspace)}
    kinds |= dict.fromkeys(own_in(workspace), "shown")
    kinds[workspace] = "workspace"
    kept: dict[Path, Kind] = {}  # but what changes nothing; the home folder is one of its own
    for path in sorted(kinds, key=lambda each: (len(each.parts), str(each))):
        around = next((kept[each] for each in path.parents if each in kept), None)
        if path == seen.home or kinds[path] != around:
            kept[path] = kinds[path]
    return list(kept.items())


def listening_sockets() -> tuple[Path, ...]:
    """Return the unix sockets of this host that a command could get at by their name.

    In a folder that it can not enter nothing can be hidden either.
    """
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    names = (line.split(maxsplit=7)[-1] for line in lines.splitlines()[1:] if " /" in line)
    found = {Path(os.path.realpath(name)) for name in names}
    return tuple(sorted(path for path in found if _is_socket(path)))


def _is_socket(path: Path) -> bool:
    try:
        around = (each.stat() for each in path.parents)
        return path.is_socket() and not any(map(_is_closed, around))
    except OSError:  # it may not be looked at, and so not be connected to either
        return False


# --- Open places in a workspace, to be mounted where they are: what is mounted can not be renamed.
#
# They are opened step by step without following links, so that nothing that a command swaps
# meanwhile is taken for them.

_PINNED: Final = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Pinned:
    """An open place in the workspace, and whether commands may write to it."""

    fd: int
    path: Path
    writable: bool


class Pins:
    """Places by their path relative to ``workspace``. ``stack`` closes their descriptors.

    Raises :class:`~daruma.tools.errors.CommandRefused` when one that is there can not be opened:
    without it the command would not be confined as promised.
    """

    def __init__(self, workspace: Path, stack: ExitStack) -> None:
        self._workspace, self._stack = workspace, stack
        self._root = self._open(None, workspace)
        self._found: dict[Path, Pinned] = {}

    def pin(self, inside: Path, *, writable: bool) -> int | None:
        """Pin a place and, writable, all folders on the way; None if it is not there or a link.

        What is pinned once to be read only stays so. The workspace itself is mounted by others.
        """
        if not inside.parts:
            return self._root
        fd = self.around(inside)
        return None if fd is None else self._pin(fd, inside, writable=writable)

    def around(self, inside: Path) -> int | None:
        """Pin the folders on the way to a place, and return the last of them."""
        fd = self._root
        for folder in [*inside.parents][-2::-1]:
            fd = None if fd is None else self._pin(fd, folder, writable=True)
        return fd

    def all(self) -> list[Pinned]:
        """Return all of them, those that hold others first."""
        return sorted(self._found.values(), key=lambda each: len(each.path.parts))

    def _pin(self, folder: int, inside: Path, *, writable: bool) -> int | None:
        known = self._found.get(inside)
        fd = known.fd if known else self._open(folder, inside)
        if fd is not None:
            pinned = known or Pinned(fd, self._workspace / inside, writable)
            self._found[inside] = replace(pinned, writable=pinned.writable and writable)
        return fd

    def _open(self, folder: int | None, path: Path) -> int | None:
        try:
            fd = os.open(path if folder is None else path.name, _PINNED, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CommandRefused(f"{path} can not be protected: {error.strerror}") from error
        self._stack.callback(os.close, fd)
        status = os.fstat(fd)
        return None if stat.S_ISLNK(status.st_mode) or _is_closed(status) else fd


def _is_closed(status: os.stat_result) -> bool:
    """Return whether commands, which have no rights beyond the user's, can not enter a folder."""
    if not stat.S_ISDIR(status.st_mode) or status.st_uid == os.geteuid():
        return False
    of_group = status.st_gid in {os.getegid(), *os.getgroups()}
    return not status.st_mode & (stat.S_IXGRP if of_group else stat.S_IXOTH)


# --- How bubblewrap is told what to hide, to show and to open, and in which order.

CLOSED_SIZE: Final = 16 * 1024 * 1024
"""Bytes that a place which is merely hidden may hold: folders on the way to what lies deeper."""

BESIDE: Final = Path("/dev/shm/workspace")  # noqa: S108
"""Where a workspace is seen while another folder stands in its place."""


class Places:
    """What is mounted for a command in ``workspace``, which may use ``memory`` bytes.

    A ``stand_in`` is mounted in the workspace's place; then that is seen at ``BESIDE``, to be read.
    Where there are ``private`` places, or an empty list of them, the workspace can be read only.
    """

    def __init__(
        self,
        view: Seen,
        workspace: Path,
        memory: int,
        stand_in: Path | None = None,
        private: Iterable[Path] | None = None,
    ) -> None:
        self._stand_in = stand_in
        self._bind = "--bind" if private is None else "--ro-bind"
        found = mounts(view, workspace, listening_sockets())
        self._kinds = {path: kind for path, kind in found if not path.is_relative_to("/dev")}
        self._kinds |= dict.fromkeys(private or (), "private")
        self._read_only = private is not None
        self._writable = {Path(os.path.realpath(place)) for place in TEMPORARY}
        self._roomy = {view.home, *self._writable}
        if self._read_only:
            # Folders that hold the workspace refuse what would be written beside it, and be lost.
            # But in a home folder and in temporary ones commands have to write.
            around = (each for each in workspace.parents if within(each, view.hidden))
            closed = {each for each in around if not within(each, view.shown)} - self._roomy
            kinds: dict[Path, Kind] = {**dict.fromkeys(closed, "hidden"), **self._kinds}
            self._kinds = {path: kinds[path] for path in sorted(kinds, key=lambda each: each.parts)}
        self._size = max(memory // 4, CLOSED_SIZE)
        here = (path for path in self._kinds if path.is_relative_to(workspace))
        self.inside = [path for path in here if path != workspace]

    def arguments(self, pinned: Iterable[Pinned]) -> Iterator[str]:
        """Yield all of them; ``pinned`` come first in the workspace, for they open again."""
        yield from ("--size", str(self._size), "--tmpfs", "/dev/shm")  # noqa: S108
        yield from self._mounts(path for path in self._kinds if path not in self.inside)
        for each in pinned:
            kind = "--bind-fd" if each.writable else "--ro-bind-fd"
            yield from (kind, str(each.fd), str(each.path))
        yield from self._mounts(self.inside)

    def _mounts(self, paths: Iterable[Path]) -> Iterator[str]:
        for path in paths:
            yield from self._mount(path, self._kinds[path])

    def _mount(self, path: Path, kind: Kind) -> Iterator[str]:
        if kind == "workspace" and self._stand_in:
            yield from ("--bind", str(self._stand_in), str(path))
            yield from ("--ro-bind", str(path), str(BESIDE))
        elif kind == "workspace":
            yield from (self._bind, str(path), str(path))
        elif kind == "shown":
            yield from ("--ro-bind-try", str(path), str(path))
        elif path.is_dir():
            mode = "1777" if path in self._writable else "0755"
            if path not in self._roomy and (kind == "private" or self._read_only):
                # closed, too: then what is hidden is refused, rather than missing
                mode = "0111" if any(path in each.parents for each in self._kinds) else "0000"
            size = self._size if path in self._roomy else CLOSED_SIZE
            yield from ("--perms", mode, "--size", str(size), "--tmpfs", str(path))
        elif path.exists():  # it was, when this host was looked at
            yield from ("--ro-bind", os.devnull, str(path))
