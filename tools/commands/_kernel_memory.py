"""What the kernel holds for a command, which its processes' own memory does not show (SE-09)."""

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

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
            if _set_limits(folder, most, controller):
                return folder
    return None


def _set_limits(folder: Path, most: Mapping[str, int], controller: str) -> bool:
    """Write the limits that a group has; return whether those of ``controller`` are among them."""
    held = False
    for name in (each for each in most if (folder / each).exists()):
        with suppress(OSError):  # a kernel may be without swap, or without counting it
            (folder / name).write_text(str(most[name]), encoding="ascii")
            held |= name in (f"{controller}.max", f"{controller}.limit_in_bytes")
    return held


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
        sockets |= set(_sockets(pid))
        namespace = _link(_PROC / str(pid) / "ns/mnt")
        if namespace not in {own, ""} and namespace not in mounts:
            mounts[namespace] = sum(_filled(pid))
    return len(sockets) * _buffer() + sum(mounts.values())


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError), os.scandir(_PROC / str(pid) / "fd") as entries:
        for each in entries:
            if (name := _link(Path(each.path))).startswith("socket:"):
                yield name


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


def _buffer() -> int:
    return int(_text(Path("/proc/sys/net/core/wmem_default")).strip() or _DEFAULT_BUFFER)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - it is no path
    except OSError:
        return ""
