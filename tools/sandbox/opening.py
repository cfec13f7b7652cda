"""Opening the sandbox: the best level there is, proved by a probe before it is relied on."""

import asyncio
import fcntl
import hashlib
import importlib.util
import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from daruma.state.settings import Sandbox as SandboxSettings
from daruma.tools.commands.process import Asked, Launch, Limits, limited
from daruma.tools.errors import CommandRefused
from daruma.tools.sandbox.namespace import Namespace, find_bubblewrap
from daruma.tools.sandbox.sandbox import REMEDY, STRENGTH, Level, Sandbox, SandboxUnavailable
from daruma.tools.sandbox.seccomp import supported
from daruma.tools.threads import entered_in_thread, in_thread, to_thread

# --- What is laid out on the outside for a probe, so that what comes through can be seen there.

LONGEST_ADDRESS: Final = 107
"""Bytes of a unix socket's name, by ``unix(7)``."""

_STREAMS: Final = ("tcp", "fast_open", "multipath", "unix_socket", "abstract_socket")


class Trap:
    """Files, sockets and a secret outside of a workspace; ``target`` tells a probe where."""

    def __init__(self, outside: Path, workspace: Path, stack: ExitStack) -> None:
        self.outside, self.workspace = outside, workspace
        self._secret = secrets.token_hex()
        abstract = f"daruma-{secrets.token_hex(8)}"
        for name in ("kept", "gone", "mode", "linked"):
            (outside / name).write_text("as it was", encoding="utf-8")
        (outside / "mode").chmod(0o600)
        os.utime(outside / "mode", (5, 5))
        (outside / "secret").write_text(self._secret, encoding="utf-8")
        (workspace / ".git" / "hooks").mkdir(parents=True)
        (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        self._sockets = dict(_sockets(outside, abstract, stack))
        ports = {name: _port(s) for name, s in self._sockets.items() if s.family == socket.AF_INET}
        self.target: dict[str, Any] = {
            **ports,
            "outside": str(outside),
            "abstract": abstract,
            "pid": os.getpid(),
        }

    def open(self, seen: Mapping[str, object]) -> set[str]:
        """Return the names of the attempts that came through; ``seen`` is what the probe said."""
        told = {
            "home_secret": seen.get("home_secret") == self._secret,
            "other_processes": seen.get("other_processes") == _own("cmdline"),
            "other_environment": seen.get("other_environment") == _own("environ"),
            "kernel_settings": seen.get("kernel_settings") is True,
            "vsock": seen.get("vsock") is True,
        }
        told["signals"] = told["other_processes"] and seen.get("signals") is True
        found = {**told, **self._files(), "daemon": self._locked()}
        return {name for name, is_open in found.items() if is_open} | {
            name for name, sock in self._sockets.items() if _came(sock)
        }

    def _files(self) -> dict[str, bool]:
        mode = (self.outside / "mode").stat()
        return {
            "write_outside": (self.outside / "new").exists(),
            "truncate_outside": self._changed("kept"),
            "delete_outside": self._changed("gone"),
            "link_outside": self._changed("linked"),
            "chmod_outside": mode.st_mode & 0o777 != 0o600,
            "utime_outside": mode.st_mtime != 5,
            "git_hooks": (self.workspace / ".git/hooks/pre-commit").exists()
            or (self.workspace / "git").exists(),
        }

    def _changed(self, name: str) -> bool:
        try:
            return (self.outside / name).read_text(encoding="utf-8") != "as it was"
        except OSError:
            return True

    def _locked(self) -> bool:
        with suppress(FileNotFoundError), (self.workspace / "lock").open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


def _sockets(outside: Path, abstract: str, stack: ExitStack) -> Iterator[tuple[str, socket.socket]]:
    inet, unix, host = socket.AF_INET, socket.AF_UNIX, ("127.0.0.1", 0)
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    for name, family, kind, address in (
        ("tcp", inet, stream, host),
        ("fast_open", inet, stream, host),
        ("multipath", inet, stream, host),
        ("udp", inet, datagram, host),
        ("unix_socket", unix, stream, _address(outside, "socket", stack)),
        ("unix_datagram", unix, datagram, _address(outside, "datagram", stack)),
        ("abstract_socket", unix, stream, "\0" + abstract),
    ):
        sock = stack.enter_context(socket.socket(family, kind))
        sock.settimeout(0)
        sock.bind(address)
        if name in _STREAMS:
            sock.listen()
        yield name, sock


def _address(folder: Path, name: str, stack: ExitStack) -> str:
    """Return the name of a socket: the kernel takes one of 107 bytes, and a home may lie deeper."""
    path = folder / name
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        return str(path)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, opened)
    return f"/proc/self/fd/{opened}/{name}"


def _port(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def _came(sock: socket.socket) -> bool:
    try:
        if sock.type == socket.SOCK_DGRAM:
            return bool(sock.recv(1))
        sock.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _own(name: str) -> str:
    return hashlib.sha256(Path("/proc/self", name).read_bytes()).hexdigest()


# --- Proving a level: a probe tries to break out under the real policy; what it reached is listed.

SECONDS: Final = 10.0
PROCESSES: Final = 16

_PROBE: Final = Path(__file__).with_name("probe.py")
_FORKS: Final = f"""import os, time
for _ in range({4 * PROCESSES}):
    if os.fork() == 0:
        break
time.sleep({SECONDS})"""

WORDS: Final = {
    "write_outside": "writing outside of the workspace",
    "truncate_outside": "emptying files outside",
    "delete_outside": "deleting files outside",
    "link_outside": "writing outside through links",
    "chmod_outside": "modes of files outside",
    "utime_outside": "times of files outside",
    "git_hooks": "git hooks and configuration in the workspace",
    "kernel_settings": "settings of the kernel",
    "home_secret": "reading the home folder",
    "other_processes": "seeing other processes",
    "other_environment": "variables of other processes",
    "signals": "signals to other processes",
    "tcp": "TCP",
    "fast_open": "TCP Fast Open",
    "multipath": "MPTCP",
    "udp": "UDP",
    "unix_socket": "unix sockets of other programs",
    "unix_datagram": "unix datagrams to other programs",
    "abstract_socket": "abstract unix sockets",
    "vsock": "sockets to the hosting machine",
    "daemon": "processes that outlive the command",
    "processes": "the number of processes",
}
"""Every attempt, as it is named when it comes through."""

NETWORK: Final = frozenset({"tcp", "fast_open", "multipath", "udp", "abstract_socket"})
"""What is open, as asked for, when commands may use the network."""

NOT_AT_LANDLOCK: Final = frozenset({
    "chmod_outside", "utime_outside", "git_hooks", "other_processes", "signals",
})  # fmt: skip
"""What Landlock can not stop, or not on every kernel: the level is there without it."""


class NotProved(Exception):
    """Raised when a level does not hold what it stands for; the text says what, in a few words."""


class Leaks(NotProved):
    """Raised when a level runs commands, but attempts come through that it must stop."""


async def proved(sandbox: Sandbox, *, network: bool) -> Sandbox:
    """Return the sandbox with what it does not cover. Raises :class:`NotProved`."""
    found = await reached(sandbox)
    if missing := found - _may_be_open(sandbox.level, network=network):
        raise Leaks("does not stop " + ", ".join(_in_words(missing)))
    allowed = ("the network, which the settings allow",) if network else ()
    left = found - NETWORK if network else found
    return replace(sandbox, not_covered=(*allowed, *_in_words(left)))


async def reached(sandbox: Sandbox) -> set[str]:
    """Return the names of all attempts that come through. Raises :class:`NotProved`."""
    async with entered_in_thread(_laid_out()) as trap:
        code = await to_thread(_PROBE.read_text, encoding="utf-8")
        probe = (sys.executable, "-I", "-S", "-c", code, json.dumps(trap.target))
        forks = (sys.executable, "-I", "-S", "-c", _FORKS)
        few = replace(sandbox, limits=Limits(sandbox.limits.memory, PROCESSES))
        try:
            said, forked = await asyncio.gather(
                sandbox.run(probe, workspace=trap.workspace, timeout=SECONDS),
                few.run(forks, workspace=trap.workspace, timeout=SECONDS / 2),
            )
        except CommandRefused as error:
            raise NotProved(str(error)) from None
        if not said.passed:
            raise NotProved(f"can not run a command: {_last_line(said.stderr) or 'it ended'}")
        open_ = await in_thread(trap.open, json.loads(said.stdout))
    return open_ if forked.stopped_by == "processes" else open_ | {"processes"}


@contextmanager
def _laid_out() -> Iterator[Trap]:
    with ExitStack() as stack:
        outside = Path(stack.enter_context(_folder(Path.home())))
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="daruma-")))
        yield Trap(outside, workspace.resolve(), stack)


def _folder(at: Path) -> "tempfile.TemporaryDirectory[str]":
    try:
        return tempfile.TemporaryDirectory(prefix=".daruma-self-test-", dir=at)
    except OSError:
        return tempfile.TemporaryDirectory(prefix="daruma-self-test-")


def _may_be_open(level: Level, *, network: bool) -> frozenset[str]:
    allowed = NETWORK if network else frozenset()
    return allowed | NOT_AT_LANDLOCK if level == "landlock" else allowed


def _in_words(names: set[str]) -> tuple[str, ...]:
    return tuple(words for name, words in WORDS.items() if name in names)


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""


# --- The level *none*: nothing but limits, and the end of the process group.


@contextmanager
def unconfined(_: Path, asked: Asked) -> Iterator[Launch]:
    """Prepare one command."""
    yield Launch(limited(asked.argv), asked.env)


# --- Opening the sandbox: the best level there is, proved before it is relied on.

NOTHING: Final = (
    "files outside of the workspace, secrets, the network, other processes",
    *(() if sys.platform == "linux" else ("memory and number of processes",)),
)
"""What the level none leaves open; its limits are read from a process table that Linux has."""

ONLY_LINUX: Final = "there is no sandbox on this system but on Linux"

_opened: dict[str, Sandbox] = {}  # by settings: a proof holds as long as the process lives


async def open_sandbox(settings: SandboxSettings) -> Sandbox:
    """Return the best level there is, proved by a self-test in the real policy.

    It is proved once in a process for the same settings. Without ``require`` the level may be none,
    and says so. Raises :class:`SandboxUnavailable`, with the reason and the remedy, if what is
    required is not to be had.
    """
    key = settings.model_dump_json()
    if key not in _opened:
        _opened.setdefault(key, await _best(settings))
    return _opened[key]


async def open_best() -> Sandbox:
    """Return the best level there is, under the settings' defaults."""
    return await open_sandbox(SandboxSettings())


def require_mechanism(required: Level | None) -> None:
    """Raise :class:`SandboxUnavailable` if it is plain, without a proof, that a level is not there.

    A level is required at least: where namespaces are missing, *landlock* may still be met by them.
    """
    if required in (None, "none"):
        return
    reasons = {level: _missing(level) for level in _candidates(required)}
    if all(reasons.values()):
        raise _unavailable(required, reasons)


async def _best(settings: SandboxSettings) -> Sandbox:
    limits = Limits(settings.memory_mb * 1024 * 1024, settings.processes)
    reasons: dict[Level, str] = {}
    for level in _candidates(settings.require):
        try:
            opened = await to_thread(prepared, level, network=settings.network, limits=limits)
            return await proved(opened, network=settings.network)
        except NotProved as error:
            reasons[level] = str(error)
    if settings.require not in (None, "none"):
        raise _unavailable(settings.require, reasons)
    why = "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
    mechanism = "chosen by name" if settings.require else why
    return Sandbox("none", NOTHING, mechanism, limits, unconfined)


def _candidates(required: Level | None) -> tuple[Level, ...]:
    if required == "none":
        return ()
    levels: tuple[Level, ...] = ("namespace", "landlock")
    return tuple(each for each in levels if STRENGTH[each] >= STRENGTH[required or "landlock"])


def prepared(level: Level, *, network: bool, limits: Limits) -> Sandbox:
    """Return a level that is not proved yet. Raises :class:`NotProved` if it can not be there."""
    if level == "none":
        return Sandbox(level, NOTHING, "chosen by name", limits, unconfined)
    if reason := _missing(level):
        raise NotProved(reason)
    if level == "namespace":
        found = find_bubblewrap(_places())
        if isinstance(found, str):
            raise NotProved(found)
        launcher = Namespace(found.path, network, limits).launch
        return Sandbox(level, (), f"bubblewrap {found.version}", limits, launcher)
    import landlockpy

    from daruma.tools.sandbox.landlock import Landlock

    abi = landlockpy.abi_version()
    return Sandbox(level, (), f"Landlock ABI {abi}", limits, Landlock(network).launch)


def _missing(level: Level) -> str:
    """Return why a level can not be there; empty if it may be."""
    if sys.platform != "linux":
        return ONLY_LINUX
    if not supported():
        return "there is no system call filter for this processor"
    if level == "namespace":
        found = find_bubblewrap(_places())
        return found if isinstance(found, str) else ""
    return _landlock_missing()


def _places() -> str:
    return os.environ.get("PATH", os.defpath)


def _landlock_missing() -> str:
    if importlib.util.find_spec("landlockpy") is None:
        return "landlockpy is not installed"
    import landlockpy

    return "" if landlockpy.supported() else "the kernel has no Landlock"


def _unavailable(required: Level | None, reasons: dict[Level, str]) -> SandboxUnavailable:
    why = "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
    return SandboxUnavailable(f"sandbox.require is {required!r}, but {why}. Remedy: {REMEDY}")
