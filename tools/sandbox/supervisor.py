"""Starts one command confined by Landlock and seccomp, and ends all that it leaves behind.

Run as a script of its own, by a Python without site packages, so that it starts quickly: it
imports nothing of Daruma. Arguments: the descriptors of the lifeline, the ruleset and the filter, a
folder of the command's own that is removed at the end, then the command.

It is told to end by the end of its lifeline, whose other end Daruma holds: also when Daruma is
killed. As a subreaper it becomes the parent of every orphan, and so loses none.

As ``serve`` and a command it starts a server that nobody confines, and whose lifeline is its input:
so no server of a killed Daruma stays behind."""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

# pathlib would take a third of the time in which this starts
# ruff: noqa: PTH101, PTH106, PTH108, PTH123, PTH208

SET_PARENT_DEATH_SIGNAL, DROP_FROM_BOUND, SET_SECCOMP = 1, 24, 22  # linux/prctl.h
SET_SUBREAPER, SET_NO_NEW_PRIVILEGES = 36, 38
FILTER_MODE = 2  # linux/seccomp.h
CAPABILITIES_VERSION = 0x20080522  # linux/capability.h
LANDLOCK_RESTRICT_SELF = 446  # on every architecture
END_SECONDS = 10.0
LEAVE_SECONDS = 1.5
"""For a server to end by itself, once its input has ended."""

SUPERVISOR = __file__

libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    """What the kernel takes for a filter: struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def main(lifeline: int, ruleset: int, program: int, own: str, argv: list[str]) -> int:
    """Run the command and return what `os.waitid` says of its end."""
    must(libc.prctl(SET_SUBREAPER, 1, 0, 0, 0))
    code = os.pread(program, 1 << 20, 0)
    child = os.fork()
    if child == 0:
        become(ruleset, code, argv)
    ended = os.pidfd_open(child)
    either = select.poll()  # not select, which takes no descriptor above 1023
    for fd in (lifeline, ended):
        either.register(fd, select.POLLIN)
    either.poll()
    code_of_child = end_of(child)
    remove(own)
    return code_of_child


def serve(argv: list[str]) -> int:
    """Run a server until its input or it ends, and return what `os.waitid` says of its end."""
    must(libc.prctl(SET_SUBREAPER, 1, 0, 0, 0))
    child = os.fork()
    if child == 0:
        start(argv)
    ended = os.pidfd_open(child)
    either, alone = select.poll(), select.poll()
    either.register(0, 0)  # that nobody writes any more; what is written is the server's
    for each in (either, alone):
        each.register(ended, select.POLLIN)
    either.poll()
    alone.poll(LEAVE_SECONDS * 1000)
    return end_of(child)


def start(argv: list[str]) -> None:
    """Turn into a server that ends with its supervisor."""
    try:
        must(libc.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))
        os.execv(argv[0], argv)  # noqa: S606 - this is the server
    except OSError as error:
        os.write(2, f"{argv[0]} can not be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def end_of(child: int) -> int:
    """Kill the child and all that comes from it; return what `os.waitid` said of its end."""
    status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    end_all()
    if status is None:
        return -signal.SIGKILL
    return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status


def become(ruleset: int, code: bytes, argv: list[str]) -> None:
    """Give up everything, for ever, and turn into the command."""
    try:
        os.setsid()
        must(libc.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))
        for number in range(64):  # all, also those that root would get back with the next program
            libc.prctl(DROP_FROM_BOUND, number, 0, 0, 0)  # fails unprivileged, or beyond the last
        header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
        must(libc.capset(header, (ctypes.c_uint32 * 6)()))
        must(libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        must(libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0))
        program = Program(len(code) // 8, code)
        must(libc.prctl(SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0))
        os.closerange(3, 1 << 16)
        os.execvp(argv[0], argv)  # noqa: S606 - this is the command
    except OSError as error:
        os.write(2, f"{argv[0]} can not be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def must(result: int) -> None:
    """Raise OSError for a call that failed: nothing is run half confined."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def end_all() -> None:
    """Kill every descendant: first stop them all, so that none forks while they are counted."""
    deadline = time.monotonic() + END_SECONDS
    stopped: set[int] = set()
    while time.monotonic() < deadline and reap():
        alive = descendants()
        for pid in alive:
            tell(pid, signal.SIGKILL if alive <= stopped else signal.SIGSTOP)
        if alive <= stopped:
            time.sleep(0.001)
        stopped |= alive


def reap() -> bool:
    """Bury the dead; return whether there are other children."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
        return True
    return False


def descendants() -> set[int]:
    """Return all processes that come from this one."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found, size = {os.getpid()}, 0
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {os.getpid()}


def tell(pid: int, number: int) -> None:
    """Send a signal to one that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def remove(folder: str) -> None:
    """Remove a folder that is nobody else's any more; links in it are not followed."""
    with suppress(OSError):
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                remove(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
        os.rmdir(folder)


def end_like(code: int) -> None:
    """End with the command's own code or signal."""
    if code < 0:
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


if __name__ == "__main__" and sys.argv[1] == "serve":
    end_like(serve(sys.argv[2:]))
elif __name__ == "__main__":
    lifeline, ruleset, program = map(int, sys.argv[1:4])
    end_like(main(lifeline, ruleset, program, sys.argv[4], sys.argv[5:]))
