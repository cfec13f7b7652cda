"""Tries to break out, from the inside of a sandbox; others judge on the outside what came
through.  Run as a script of its own, by a Python without site packages; it imports nothing of
Daruma. Its argument is a JSON object of what to try it on; it prints what it could see, as
another.
"""

import fcntl
import hashlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

# it tries system calls, not paths
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH108, PTH110, PTH123, PTH211, S103

VSOCK, FAST_OPEN, MULTIPATH = 40, 0x20000000, 262  # linux/socket.h, linux/in.h

Target = dict[str, Any]


def write_outside(target: Target) -> None:
    with open(target["outside"] + "/new", "w", encoding="utf-8") as file:
        file.write("x")


def truncate_outside(target: Target) -> None:
    os.truncate(target["outside"] + "/kept", 0)


def delete_outside(target: Target) -> None:
    os.unlink(target["outside"] + "/gone")


def chmod_outside(target: Target) -> None:
    os.chmod(target["outside"] + "/mode", 0o777)


def utime_outside(target: Target) -> None:
    os.utime(target["outside"] + "/mode", (1, 1))


def link_outside(target: Target) -> None:
    """Reach a file through a link of one's own."""
    os.symlink(target["outside"] + "/linked", "link")
    with open("link", "w", encoding="utf-8") as file:
        file.write("x")


def git_hooks(_: Target) -> None:
    """Leave a program that git runs later, or make git look for it elsewhere."""
    try:
        os.rename(".git", "git")
        os.mkdir(".git")
        os.rename("git/HEAD", ".git/HEAD")
    except OSError:
        os.makedirs(".git/hooks", exist_ok=True)
        with open(".git/hooks/pre-commit", "w", encoding="utf-8") as file:
            file.write("x")


def home_secret(target: Target) -> str:
    with open(target["outside"] + "/secret", encoding="utf-8") as file:
        return file.read()


def other_processes(target: Target) -> str:
    """Read what another process was started with."""
    return _digest(f"/proc/{target['pid']}/cmdline")


def other_environment(target: Target) -> str:
    return _digest(f"/proc/{target['pid']}/environ")


def signals(target: Target) -> bool:
    """Signal another process, without effect."""
    os.kill(target["pid"], 0)
    return True


def kernel_settings(_: Target) -> bool:
    """Open a setting for writing: root owns them, in any namespace."""
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


def tcp(target: Target) -> None:
    """Connect to a server of the host."""
    with socket.socket() as sock:
        sock.connect(("127.0.0.1", target["tcp"]))


def fast_open(target: Target) -> None:
    """Connect by sending."""
    with socket.socket() as sock:
        sock.sendto(b"x", FAST_OPEN, ("127.0.0.1", target["fast_open"]))


def multipath(target: Target) -> None:
    """Connect by another protocol that a TCP server takes."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MULTIPATH) as sock:
        sock.connect(("127.0.0.1", target["multipath"]))


def udp(target: Target) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.1", target["udp"]))


def address(target: Target, name: str) -> str:
    """The name of a socket outside; a long one by way of its folder, as the trap has it."""
    path = f"{target['outside']}/{name}"
    if len(os.fsencode(path)) <= 107:
        return path
    return f"/proc/self/fd/{os.open(target['outside'], os.O_RDONLY)}/{name}"


def unix_socket(target: Target) -> None:
    """Connect to a server that has a name in the file system."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(address(target, "socket"))


def unix_datagram(target: Target) -> None:
    """Send from one end of a pair to somewhere else."""
    for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        with one:
            one.sendto(b"x", address(target, "datagram"))


def abstract_socket(target: Target) -> None:
    """Connect to a server that has a name in the kernel only."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect("\0" + target["abstract"])


def vsock(_: Target) -> bool:
    """Make a socket that leads to the machine that hosts this one."""
    socket.socket(VSOCK).close()
    return True


def daemon(_target: Target) -> None:
    """Leave a process behind, away from its parents and its session, that holds a lock."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            fcntl.flock(os.open("lock", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
            os.write(write, b"x")
            for _ in range(600):
                if not os.path.exists("lock"):  # where nothing ends it, it ends with its folder
                    break
                time.sleep(0.1)
        os._exit(0)
    os.wait()
    os.read(read, 1)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


ATTEMPTS: tuple[Callable[[Target], object], ...] = (
    write_outside, truncate_outside, delete_outside, chmod_outside, utime_outside, link_outside,
    git_hooks, kernel_settings, home_secret, other_processes, other_environment, signals,
    tcp, fast_open, multipath, udp, unix_socket, unix_datagram, abstract_socket, vsock, daemon,
)  # fmt: skip


def main(target: Target) -> dict[str, object]:
    """Try everything; what failed is told by its error."""
    seen: dict[str, object] = {}
    for attempt in ATTEMPTS:
        try:
            seen[attempt.__name__] = attempt(target)
        except OSError as error:
            seen[attempt.__name__] = f"refused: {error}"
    return seen


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))  # noqa: T201
