"""Starting a command, watching what it uses, and ending it with all its children."""

import os
import re
import select
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal, Self

from daruma.tools.commands._host_programs import DEVNULL, PIPE, Started, TakesTooLong, start_program
from daruma.tools.errors import CommandRefused

# --- A control group of the command's own, where this process may make one.

MOUNTED: Final = Path("/sys/fs/cgroup")
REMOVALS: Final = 40
_PROC: Final = Path("/proc")
_PREFIX: Final = "daruma-"
_START: Final = (
    'while [ "$1" != -- ]; do { echo $$ >"$1"; } 2>/dev/null; shift; done; shift; exec "$@"'
)
_KILLS: Final = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """Folders of one group, one for each hierarchy; none where there is no group."""

    folders: tuple[Path, ...] = ()
    memory: Path | None = None

    def entered(self, argv: Iterable[str]) -> tuple[str, ...]:
        """Return a command's words as it is started within the group."""
        if not self.folders:
            return tuple(argv)
        own = (str(each / "cgroup.procs") for each in self.folders)
        return ("/bin/sh", "-c", _START, "sh", *own, "--", *argv)

    def counts_memory(self) -> bool:
        """Whether the kernel counts a command's memory, and all that it holds for it."""
        return self.memory is not None and bool(_text(self.memory / "cgroup.procs"))

    def ran_out(self) -> bool:
        """Whether the kernel has killed a process here for want of memory."""
        files = ("memory.events", "memory.oom_control")
        told = [_text(self.memory / each) for each in files] if self.memory else []
        return any(int(each) for text in told for each in _KILLS.findall(text))


NO_GROUP: Final = ControlGroup()


@contextmanager
def control_group(memory: int, threads: int) -> Iterator[ControlGroup]:
    """Yield a group with these limits, which is removed at the end, when its processes are gone."""
    most = {
        "memory.max": memory,
        "memory.swap.max": 0,
        "memory.limit_in_bytes": memory,
        "memory.memsw.limit_in_bytes": memory,
        "pids.max": threads,
    }
    with ExitStack() as stack:
        made = {name: _made(name, most, stack) for name in ("memory", "pids")}
        yield ControlGroup(tuple(each for each in made.values() if each), made["memory"])


def _made(controller: str, most: Mapping[str, int], stack: ExitStack) -> Path | None:
    for around in _around(controller):
        with suppress(OSError):
            sweep(around)
            folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=around))
            stack.callback(_remove, folder)
            held = False
            for name in (each for each in most if (folder / each).exists()):
                with suppress(OSError):  # a kernel may be without swap, or without counting it
                    (folder / name).write_text(str(most[name]), encoding="ascii")
                    held |= name in (f"{controller}.max", f"{controller}.limit_in_bytes")
            if held:
                return folder
    return None


@cache
def sweep(around: Path) -> None:
    """Remove the groups of processes that are gone: one that was killed could not."""
    for left in around.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if not (_PROC / pid).exists():
            with suppress(OSError):
                left.rmdir()


def _around(controller: str) -> Iterator[Path]:
    """Yield where a group can be made without leaving a limit that holds for this process.

    In the second version a group with processes has no groups with limits: then one is made beside
    it, where it has no limit of its own.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, names, path in (line.split(":", 2) for line in lines):
        if controller in names.split(","):
            yield MOUNTED / names / path[1:]
        elif not names and controller == "memory":  # a process is in one group: that has both
            own = MOUNTED / path[1:]
            yield own
            if path != "/" and _text(own / "memory.max").strip() == "max":
                yield own.parent


def _remove(folder: Path) -> None:
    for _ in range(REMOVALS):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # a process that was killed is not quite gone
            time.sleep(0.005)
        else:
            return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# --- Without a group: what sockets may hold, and what lies in temporary file systems.

INODE: Final = 1200
"""Bytes that the kernel takes for a file in a temporary file system, with its name."""

_DEFAULT_BUFFER: Final = 212_992


def held_by_kernel(pids: Iterable[int]) -> int:
    """Return how many bytes the kernel may hold for processes: an estimate that is rather high.

    A socket counts with its whole buffer, which commands can not enlarge; a temporary file system
    that is not this process's own counts with what it is filled with.
    """
    sockets, mounts = set[str](), dict[str, int]()
    own = _link(Path("/proc/self/ns/mnt"))
    for pid in pids:
        with suppress(OSError), os.scandir(_PROC / str(pid) / "fd") as entries:
            for each in entries:
                if (name := _link(Path(each.path))).startswith("socket:"):
                    sockets.add(name)
        namespace = _link(_PROC / str(pid) / "ns/mnt")
        if namespace not in {own, ""} and namespace not in mounts:
            mounts[namespace] = sum(_filled(pid))
    buffer = _text(Path("/proc/sys/net/core/wmem_default")).strip() or _DEFAULT_BUFFER
    return len(sockets) * int(buffer) + sum(mounts.values())


def _filled(pid: int) -> Iterator[int]:
    counted = set[int]()
    for line in _text(_PROC / str(pid) / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        if not after.startswith("tmpfs "):
            continue
        place = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), before.split()[4])
        with suppress(OSError, ValueError):
            path = f"/proc/{pid}/root{place}"
            there, device = os.statvfs(path), os.stat(path).st_dev  # noqa: PTH116
            if device not in counted:
                counted.add(device)
                yield (there.f_blocks - there.f_bfree) * there.f_frsize
                yield (there.f_files - there.f_ffree) * INODE


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - it is no path
    except OSError:
        return ""


# --- How one command is started and ended: what a level of confinement has to say about it.

FILE_BLOCKS: Final = 16 * 1024 * 1024  # of 512 bytes: no file grows beyond 8 GiB
THREADS_EACH: Final = 16
"""Threads count as processes for the system's own limit, which is only the second line."""

OPEN_FILES: Final = 4096
"""Each process may hold so many; the kernel bounds by it, too, what is under way in sockets."""

_LIMITED: Final = "ulimit -c 0; ulimit -f {blocks}; ulimit -n {files}; {processes}"
_PROCESSES: Final = "ulimit -u {0} || ulimit -p {0};"  # bash and ksh, dash and ash


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use with all its processes: bytes of memory, and their number."""

    memory: int
    processes: int


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command as it was asked for; ``stand_in`` is what it sees in the workspace's place.

    ``read_only`` leaves it nothing to change: see :class:`daruma.tools.sandbox.Sandbox`.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stand_in: Path | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """A command as it is started. ``fds`` are inherited; ``started`` is told its id once it runs.

    ``end`` ends what the killing of the process group would miss, and waits for that.
    ``was_set_up`` tells, once all has ended with exit code 1, whether that was the command's own.
    ``guarded``: a guard has to end it when this process is killed. ``notes`` are complete once it
    is left: what there is to tell of what the command left behind.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    started: Callable[[int], object] = lambda _: None
    end: Callable[[], object] = lambda: None
    was_set_up: Callable[[], bool] = lambda: True
    guarded: bool = True
    notes: list[str] = field(default_factory=list)


@contextmanager
def plain(asked: CommandRequest) -> Iterator[Launch]:
    """Start a command as it is."""
    yield Launch(asked.argv, asked.env)


@dataclass(frozen=True, slots=True)
class Confinement:
    """A level with its name, what it does not cover, its limits, and how it starts commands."""

    level: str = "none"
    not_covered: tuple[str, ...] = ()
    limits: Limits | None = None
    launch: Callable[[CommandRequest], AbstractContextManager[Launch]] = plain


UNCONFINED: Final = Confinement()


def with_limits(argv: tuple[str, ...], processes: int | None = None) -> tuple[str, ...]:
    """Return ``argv`` started by a shell that sets limits first: no core files, no endless file.

    ``processes`` only where they are counted for this command alone: else all of the user's are.
    """
    own = _PROCESSES.format(processes * THREADS_EACH) if processes else ""
    script = _LIMITED.format(blocks=FILE_BLOCKS, files=OPEN_FILES, processes=own)
    return ("/bin/sh", "-c", f'{{ {script} }} 2>/dev/null; exec "$@"', "sh", *argv)


# --- Waiting for a descriptor, whatever its number: select(2) takes none above 1023.


def wait_readable(fd: int, seconds: float) -> bool:
    """Wait until there is something to read, or the other end is gone; False after ``seconds``."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


# --- What a command and all its children use at the moment, as the system counts it.


def members(leader: int) -> list[int]:
    """Return the ids of a process, its descendants, and the others of its session.

    Empty where the system has no process table that can be read.
    """
    found, children = set[int](), defaultdict[int, list[int]](list)
    pids: list[int] = []
    with suppress(OSError):
        pids = [int(each.name) for each in os.scandir(_PROC) if each.name.isdigit()]
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            stat = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            children[int(stat[1])].append(pid)
            found |= {pid} if leader in (pid, int(stat[3])) else set()
    todo = list(found)
    while todo:
        new = set(children[todo.pop()]) - found
        found |= new
        todo.extend(new)
    return sorted(found)


def memory(pids: list[int], limit: int) -> int:
    """Return the memory of processes in bytes; shared pages count once if it may be above `limit`.

    To tell whose pages are shared is slow, and not done while the sum with all of them is below.
    """
    at_most = sum(map(_resident, pids))
    return at_most if at_most <= limit else sum(map(_proportional, pids))


def _resident(pid: int) -> int:
    return _counted(pid, "status", b"VmRSS:") + _page_tables(pid)


def _proportional(pid: int) -> int:
    shared = _counted(pid, "smaps_rollup", b"Pss:")
    return shared + _page_tables(pid) if shared else _resident(pid)


def _page_tables(pid: int) -> int:
    """Return what maps memory: pages that were only read take none themselves (SE-09)."""
    return _counted(pid, "status", b"VmPTE:")


def _counted(pid: int, file: str, name: bytes) -> int:
    with suppress(OSError, ValueError, IndexError):
        lines = (_PROC / str(pid) / file).read_bytes().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    return 0


# --- A command with all its children, to be ended together, also when this process is killed.
#
# The leader of the group is not reaped before the group is killed: until then its number can not
# have been given to another process.

# It is told the group's number; the end of its input then means that this process is gone.
GUARD: Final = 'read -r group && ! read -r _ && kill -s KILL -- "-$group"'
REAP_SECONDS: Final = 5.0
GROUP_SECONDS: Final = 0.1


class ProcessGroup:
    """A started command in a session of its own, and a guard that outlives us.

    The guard is a shell that waits for this process to end, even by SIGKILL, and then kills the
    group. Not covered: a command that leaves the group (setsid), or that kills its guard; and the
    instant between the command's start and the guard's knowing of it. A sandbox covers these.

    Raises CommandRefused if it can not be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        launch: Launch | None = None,
    ) -> None:
        self._launch = launch or Launch(tuple(argv), env)
        self._guard = _start_guard() if self._launch.guarded else None
        try:
            self._leader = start_program(
                argv,
                cwd=cwd,
                env=env,
                pass_fds=self._launch.fds,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            self._dismiss_guard()
            raise _not_started(error, argv, cwd) from error
        self._pipes = [pipe for pipe in (self._leader.stdout, self._leader.stderr) if pipe]
        self.pid = self._leader.pid
        self.end_signal: int | None = None
        """A descriptor that turns readable when the leader ends; None where there is no such."""
        if sys.platform == "linux":
            with suppress(OSError):
                self.end_signal = os.pidfd_open(self.pid)
        try:
            if self._guard is not None and self._guard.stdin is not None:
                self._guard.stdin.write(b"%d\n" % self.pid)
            self._launch.started(self.pid)
        except BaseException:
            self.__exit__()
            raise

    @property
    def outputs(self) -> list[int]:
        """Descriptors of standard output and standard error."""
        return [pipe.fileno() for pipe in self._pipes]

    def has_ended(self) -> bool:
        """Whether the leader has ended; it is left unreaped where the system can tell."""
        if hasattr(os, "waitid"):
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._leader.pid, look) is not None
        return self._leader.poll() is not None

    def end(self) -> int | None:
        """Kill all of the group, dismiss the guard and reap both.

        The leader's exit code (negative: the signal that ended it), or None if it can not die.
        """
        self._launch.end()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader.pid, signal.SIGKILL)
        self._dismiss_guard()
        code = None
        with suppress(TakesTooLong):
            code = self._leader.wait(REAP_SECONDS)
        # Their parent reaps the others, not we; where nobody does, the wait is bounded.
        deadline = time.monotonic() + GROUP_SECONDS
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                with suppress(PermissionError):
                    os.killpg(self._leader.pid, 0)
                time.sleep(0.001)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End what `end` has not ended yet, and let go of the pipes, whoever else holds them."""
        if self._leader.returncode is None:
            self.end()
        for pipe in self._pipes:
            pipe.close()
        if self.end_signal is not None:
            os.close(self.end_signal)

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()


def _start_guard() -> Started:
    try:
        return start_program(
            ["/bin/sh", "-c", GUARD],
            cwd="/",
            env={},
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise CommandRefused(f"no command can be started: {error.strerror}") from error


def _not_started(error: OSError | ValueError, argv: Sequence[str], cwd: Path) -> CommandRefused:
    if not isinstance(error, OSError):
        return CommandRefused("the command holds a character that commands can not hold")
    if str(error.filename) == str(cwd):
        return CommandRefused(f"the directory {cwd} can not be entered: {error.strerror}")
    return CommandRefused(f"{argv[0]} can not be started: {error.strerror}")


# --- Limits of memory and processes, held by looking at what a command uses every now and then.

INTERVAL: Final = 0.1
"""Seconds between two looks, at first and at least."""

SHARE: Final = 0.05
"""How much of a processor's time the looking may take."""

Excess = Literal["", "memory", "processes"]


class Watchdog:
    """Looks at one command's processes. Without limits it never looks."""

    def __init__(self, leader: int, limits: Limits | None, group: ControlGroup = NO_GROUP) -> None:
        self._leader = leader
        self._limits = limits
        self._group = group
        self._next = time.monotonic() + INTERVAL

    def wait(self) -> float:
        """Return for how many seconds there is nothing to do."""
        return max(0.0, self._next - time.monotonic()) if self._limits else float("inf")

    def excess(self) -> Excess:
        """Return what is exceeded, if it is time to look."""
        if self._limits is None or self.wait() > 0:
            return ""
        began, most = time.monotonic(), self._limits.memory
        pids = members(self._leader)
        found: Excess = ""
        if len(pids) > self._limits.processes:
            found = "processes"
        elif self._group.ran_out():
            found = "memory"
        else:  # of memory that a group counts the kernel sees all, and kills before it is too much
            held = 0 if self._group.counts_memory() else held_by_kernel(pids)
            found = "memory" if held + memory(pids, most - held) > most else ""
        now = time.monotonic()
        self._next = now + max(INTERVAL, (now - began) / SHARE)
        return found
