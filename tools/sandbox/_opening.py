"""Opening the sandbox: the best level there is, proved by a probe before it is relied on."""

import asyncio
import fcntl
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from errno import EACCES, EINVAL, ENOSYS, EOPNOTSUPP, EPERM
from functools import partial
from pathlib import Path
from typing import Any, Final

from daruma.state.settings import Sandbox as SandboxSettings
from daruma.tools.commands import CommandRequest, Launch, Limits, kill_reason, with_limits
from daruma.tools.errors import CommandRefused
from daruma.tools.files import closing_fd
from daruma.tools.sandbox._namespace import Namespace, find_bubblewrap
from daruma.tools.sandbox._sandbox import (
    ELSEWHERE,
    REMEDY,
    STRENGTH,
    WAIT,
    Level,
    NotProved,
    Sandbox,
    SandboxUnavailable,
    Undecided,
)
from daruma.tools.sandbox._seccomp import is_supported
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
        inet = ((name, s) for name, s in self._sockets.items() if s.family == socket.AF_INET)
        ports = {name: sock.getsockname()[1] for name, sock in inet}
        told = {"outside": str(outside), "abstract": abstract, "pid": os.getpid()}
        self.target: dict[str, Any] = {**ports, **told}

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

SECONDS: Final = (10.0, 30.0, 90.0)
"""How long a proof may take, at the first try and at the next ones (SE-04)."""

PROCESSES: Final = 16

_PROBE: Final = Path(__file__).with_name("probe.py")
_FORKS: Final = f"""import os, time
for _ in range({4 * PROCESSES}):
    if os.fork() == 0:
        break
time.sleep(600)"""
"""Ends by itself long after it has to be ended, so that it never looks as if nothing ended it."""

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

DISK: Final = "how much temporary files fill of the disk"
"""At level namespace they lie in memory, and count as such (SE-09)."""

TIMED: Final = frozenset({"daemon", "processes"})
"""What a level stops by ending it, which takes the longer the busier the machine is."""

REFUSALS: Final = (
    *(os.strerror(each).lower() for each in (EPERM, EACCES, ENOSYS, EINVAL, EOPNOTSUPP)),
    "no permission",
    "not support",
)
"""What is said, in lower case, where a mechanism is not there or is denied: anything else that
fails may be for want of time, memory or room, and proves nothing."""


class Leaks(NotProved):
    """Raised when a level runs commands, but attempts come through that it must stop."""


async def prove_level(
    sandbox: Sandbox, *, network: bool, tries: Sequence[float] = SECONDS
) -> Sandbox:
    """Return the sandbox with what it does not cover.

    A proof that ran out of time is made again with more (SE-04). Raises :class:`NotProved`, and
    :class:`Undecided` when the last of the ``tries``, in seconds, has proved nothing either.
    """
    for seconds in tries[:-1]:
        with suppress(Undecided):
            return await _proved(sandbox, seconds, network=network)
    return await _proved(sandbox, tries[-1], network=network)


async def _proved(sandbox: Sandbox, seconds: float, *, network: bool) -> Sandbox:
    found = await reached_targets(sandbox, seconds)
    missing = found - (NETWORK if network else frozenset())
    missing -= NOT_AT_LANDLOCK if sandbox.level == "landlock" else frozenset()
    if certain := missing - TIMED:
        raise Leaks("does not stop " + ", ".join(_in_words(certain)))
    if missing:
        raise Undecided(f"{', '.join(_in_words(missing))}: not stopped within {seconds:g} s")
    allowed = ("the network, which the settings allow",) if network else ()
    left = _in_words(found - NETWORK if network else found)
    disk = (DISK,) if sandbox.level == "landlock" else ()
    return replace(sandbox, not_covered=(*allowed, *left, *disk))


async def reached_targets(sandbox: Sandbox, seconds: float = SECONDS[-1]) -> set[str]:
    """Return the names of all attempts that come through, of :data:`TIMED` ``seconds`` long.

    Raises :class:`NotProved` and :class:`Undecided`.
    """
    try:
        return await _reached(sandbox, seconds)
    except CommandRefused as error:
        raise _not_run(str(error)) from None
    except (OSError, RuntimeError) as error:  # no room, no descriptors, no threads
        raise Undecided(f"the self-test can not be laid out: {error}") from error


async def _reached(sandbox: Sandbox, seconds: float) -> set[str]:
    async with entered_in_thread(_laid_out()) as trap:
        code = await to_thread(_PROBE.read_text, encoding="utf-8")
        probe = (sys.executable, "-I", "-S", "-c", code, json.dumps(trap.target))
        forks = (sys.executable, "-I", "-S", "-c", _FORKS)

        def in_english(workspace: Path, asked: CommandRequest) -> Any:  # what REFUSALS looks for
            return sandbox.launcher(workspace, replace(asked, env={**asked.env, "LC_ALL": "C"}))

        plain = replace(sandbox, launcher=in_english)
        few = replace(plain, limits=Limits(sandbox.limits.memory, PROCESSES))
        ran = await asyncio.gather(
            plain.run(probe, workspace=trap.workspace, timeout=seconds),
            few.run(forks, workspace=trap.workspace, timeout=seconds),
            return_exceptions=True,  # neither outlives the folders
        )
        if refused := [each for each in ran if isinstance(each, BaseException)]:
            raise refused[0]
        said, forked = (each for each in ran if not isinstance(each, BaseException))
        if said.timed_out:
            raise Undecided(f"the self-test did not end within {seconds:g} s")
        if not said.passed:
            last = said.stderr.strip().rpartition("\n")[2]
            raise _not_run(last or kill_reason(said) or "it ended")
        open_ = await in_thread(trap.open, json.loads(said.stdout))
    return open_ if forked.stopped_by == "processes" else open_ | {"processes"}


def _not_run(said: str) -> NotProved | Undecided:
    is_clear = any(each in said.lower() for each in REFUSALS)
    return (NotProved if is_clear else Undecided)(f"can not run a command: {said}")


# --- The folders of a self-test: locked while it lives, so that what a killed one left is told.

_PREFIX: Final = "daruma-self-test-"


@contextmanager
def _laid_out() -> Iterator[Trap]:
    with ExitStack() as stack:
        temporary = Path(tempfile.gettempdir())
        try:
            outside = _folder(Path.home(), f".{_PREFIX}", stack)
        except (OSError, RuntimeError):  # one that can not be written, or none
            outside = _folder(temporary, _PREFIX, stack)
        workspace = _folder(temporary, _PREFIX, stack)
        yield Trap(outside, workspace.resolve(), stack)


def _folder(at: Path, prefix: str, stack: ExitStack) -> Path:
    """Make a folder that is removed at the end, and sweep those that nobody holds any more."""
    for left in at.glob(f"{prefix}*"):
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        with suppress(OSError), closing_fd(os.open(left, flags)) as fd:
            if os.fstat(fd).st_uid == os.geteuid():
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
    while True:
        made = tempfile.mkdtemp(prefix=prefix, dir=at)
        stack.callback(shutil.rmtree, made, ignore_errors=True)
        with suppress(FileNotFoundError):  # another one's sweep came first
            lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, lock)
            with suppress(OSError):  # a file system without locks: then nothing is swept there
                fcntl.flock(lock, fcntl.LOCK_SH)
            if os.fstat(lock).st_nlink:
                return Path(made)


def _in_words(names: set[str]) -> tuple[str, ...]:
    return tuple(words for name, words in WORDS.items() if name in names)


# --- The level *none*: nothing but limits, and the end of the process group.


@contextmanager
def prepare_unconfined(_: Path, asked: CommandRequest) -> Iterator[Launch]:
    """Prepare one command."""
    yield Launch(with_limits(asked.argv), asked.env)


# --- Opening the sandbox: the best level there is, proved before it is relied on.

NOTHING: Final = (
    "files outside of the workspace, secrets, the network, other processes",
    *(() if sys.platform == "linux" else ("memory and number of processes",)),
)
"""What the level none leaves open; its limits are read from a process table that Linux has."""

_opened: dict[str, Sandbox] = {}  # by settings: a proof holds as long as the process lives


async def open_sandbox(settings: SandboxSettings) -> Sandbox:
    """Return the best level there is, proved by a self-test in the real policy (SE-04).

    It is proved once in a process for the same settings; what was not proved is tried again. The
    level none is entered by its name alone. Raises :class:`SandboxUnavailable`, with the reason and
    the remedy, if what is required is not to be had, if nothing is, or if that stays open.
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
    reasons: dict[Level, str] = {}
    for level in _candidates(required):
        with suppress(Undecided):
            reasons[level] = _missing(level)
    if len(reasons) == len(_candidates(required)) and all(reasons.values()):
        raise _unavailable(required, reasons)


async def _best(settings: SandboxSettings) -> Sandbox:
    limits = Limits(settings.memory_mb * 1024 * 1024, settings.processes)
    if settings.require == "none":
        return prepare_level("none", network=settings.network, limits=limits)
    reasons: dict[Level, str] = {}
    for level in _candidates(settings.require):
        prove = partial(_prove_afresh, level, limits, network=settings.network)
        try:
            try:
                return await prove()
            except Leaks:
                raise
            except NotProved:  # a refusal of the moment does not come twice
                return await prove()
        except NotProved as error:
            reasons[level] = str(error)
        except Undecided as error:  # a weaker level would be a step down for want of time
            why = f"sandbox level {level} could be neither proved nor ruled out: {error}"
            raise SandboxUnavailable(f"{why}. Remedy: {WAIT}") from error
    raise _unavailable(settings.require, reasons)


async def _prove_afresh(level: Level, limits: Limits, *, network: bool) -> Sandbox:
    opened = await to_thread(prepare_level, level, network=network, limits=limits)
    return await prove_level(opened, network=network)


def _candidates(required: Level | None) -> tuple[Level, ...]:
    if required == "none":
        return ()
    levels: tuple[Level, ...] = ("namespace", "landlock")
    return tuple(each for each in levels if STRENGTH[each] >= STRENGTH[required or "landlock"])


def prepare_level(level: Level, *, network: bool, limits: Limits) -> Sandbox:
    """Return a level that is not proved yet. Raises :class:`NotProved` if it can not be there."""
    if level == "none":
        return Sandbox(level, NOTHING, "chosen by name", limits, prepare_unconfined)
    if reason := _missing(level):
        raise NotProved(reason)
    if level == "namespace":
        found = find_bubblewrap(_places())
        launcher = Namespace(found.path, network, limits).launch
        return Sandbox(level, (), f"bubblewrap {found.version}", limits, launcher)
    import landlockpy

    from daruma.tools.sandbox._landlock import Landlock

    abi = landlockpy.abi_version()
    return Sandbox(level, (), f"Landlock ABI {abi}", limits, Landlock(network).launch)


def _missing(level: Level) -> str:
    """Return why a level can not be there; empty if it may be. Raises :class:`Undecided`."""
    if sys.platform != "linux":
        return "there is no sandbox on this system but on Linux"
    if not is_supported():
        return "there is no system call filter for this processor"
    if level != "landlock":
        return _namespaces_missing()
    if importlib.util.find_spec("landlockpy") is None:
        return "landlockpy is not installed"
    import landlockpy

    return "" if landlockpy.supported() else "the kernel has no Landlock"


def _namespaces_missing() -> str:
    try:
        find_bubblewrap(_places())
    except NotProved as error:
        return str(error)
    with suppress(OSError):
        if Path("/proc/sys/user/max_user_namespaces").read_bytes().strip() == b"0":
            return "user namespaces are switched off (user.max_user_namespaces is 0)"
    return ""


def _places() -> str:
    return os.environ.get("PATH", os.defpath)


def _unavailable(required: Level | None, reasons: dict[Level, str]) -> SandboxUnavailable:
    why = "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
    what = f"sandbox.require is {required!r}, but" if required else "no sandbox could be proved:"
    remedy = REMEDY if sys.platform == "linux" else ELSEWHERE
    return SandboxUnavailable(f"{what} {why}. Remedy: {remedy}")
