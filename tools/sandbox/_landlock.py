"""The level *landlock*: for hosts without namespaces, Landlock, a filter and a supervisor."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import landlockpy
from landlockpy import AccessFS

from daruma.tools.commands import CommandRequest, Launch, wait_readable, with_limits
from daruma.tools.sandbox._mounts import Seen, look_at_host
from daruma.tools.sandbox._repositories import Sweep
from daruma.tools.sandbox._seccomp import landlock_filter, memory_file
from daruma.tools.sandbox.supervisor import SUPERVISOR

SECONDS: Final = 15.0
"""How long the supervisor may take to end everything."""

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")

READ: Final = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.READ_DIR
DEVICE: Final = AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE
OF_FILES: Final = READ ^ AccessFS.READ_DIR | DEVICE
WRITE: Final = ~(AccessFS.MAKE_CHAR | AccessFS.MAKE_BLOCK | AccessFS.IOCTL_DEV)

_OWN_FOLDERS: Final = {
    "PYENV_ROOT": ".pyenv",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "NVM_DIR": ".nvm",
    "GOPATH": "go",
}
"""Toolchains that look for themselves beneath the home folder, which is another one inside."""


@dataclass(frozen=True)
class Landlock:
    """How commands are started at this level."""

    network: bool
    sweep: Sweep = field(default_factory=Sweep)

    @contextmanager
    def launch(self, workspace: Path, asked: CommandRequest) -> Iterator[Launch]:
        """Prepare one command."""
        notes: list[str] = []
        with ExitStack() as stack:
            if asked.stand_in is None:
                stack.enter_context(self.sweep.around(workspace, notes))
            view = look_at_host(asked.env)
            own = Path(tempfile.mkdtemp(prefix="daruma-command-"))
            stack.callback(shutil.rmtree, own, ignore_errors=True)
            rules = stack.enter_context(_ruleset(view, workspace, own, asked.stand_in))
            filter_fd = stack.enter_context(memory_file(landlock_filter(network=self.network)))
            lifeline = _Lifeline()
            stack.callback(lifeline.close)
            fds = (lifeline.read, rules.fileno(), filter_fd)
            start = (sys.executable, "-I", "-S", SUPERVISOR, *map(str, fds), str(own))
            argv = (*start, *with_limits(asked.argv))
            around = {name: view.home / folder for name, folder in _OWN_FOLDERS.items()}
            folders = {name: str(folder) for name, folder in around.items() if folder.is_dir()}
            env = {**folders, **asked.env, "HOME": str(own), "TMPDIR": str(own)}
            yield Launch(argv, env, fds, lifeline.started, lifeline.end, guarded=False, notes=notes)


def readable(hidden: Iterable[Path], top: Path = Path("/")) -> list[Path]:
    """Return the fewest places that hold all that is not hidden: Landlock can only allow."""
    closed = {*hidden, Path("/dev")}
    return list(_open(top, closed, {parent for path in closed for parent in path.parents}))


def _open(at: Path, closed: set[Path], on_the_way: set[Path]) -> Iterator[Path]:
    if at in closed:
        return
    if at not in on_the_way:
        yield at
        return
    try:
        with os.scandir(at) as entries:
            inside = sorted(Path(each.path) for each in entries if not each.is_symlink())
    except OSError:
        return
    for entry in inside:
        yield from _open(entry, closed, on_the_way)


def _ruleset(
    view: Seen, workspace: Path, own: Path, stand_in: Path | None = None
) -> landlockpy.Ruleset:
    scoped = landlockpy.Scope.ABSTRACT_UNIX_SOCKET | landlockpy.Scope.SIGNAL
    rules = landlockpy.Ruleset(scoped=scoped, handled_net=landlockpy.AccessNet.NONE)
    for path in (*readable(view.hidden), *_shown(view)):
        _allow(rules, path, READ)
    for name in DEVICES:
        _allow(rules, Path("/dev", name), DEVICE)
    if stand_in:
        _allow(rules, workspace, READ)
    for path in (stand_in or workspace, own):
        _allow(rules, path, rules.handled_fs & WRITE)
    return rules


def _shown(view: Seen) -> Iterable[Path]:
    for place in view.shown:
        yield from readable((path for path in view.hidden if path.is_relative_to(place)), place)


def _allow(rules: landlockpy.Ruleset, path: Path, access: AccessFS) -> None:
    try:
        folder = stat.S_ISDIR(path.stat().st_mode)
        rules.allow_path(path, access if folder else access & OF_FILES)
    except OSError:
        return  # it is gone, or may not be looked at: then it stays closed


class _Lifeline:
    """A pipe that tells the supervisor to end everything when our end of it is closed."""

    def __init__(self) -> None:
        self.read, self._write = os.pipe()
        self._supervisor: int | None = None

    def started(self, pid: int) -> None:
        """Learn which process the supervisor is."""
        with suppress(OSError):
            self._supervisor = os.pidfd_open(pid)

    def end(self) -> None:
        """Let go, and wait until the supervisor has ended everything and itself."""
        self._let_go()
        if self._supervisor is not None:
            wait_readable(self._supervisor, SECONDS)

    def close(self) -> None:
        """Close what is open."""
        self._let_go()
        os.close(self.read)
        if self._supervisor is not None:
            os.close(self._supervisor)

    def _let_go(self) -> None:
        if self._write >= 0:
            os.close(self._write)
            self._write = -1
