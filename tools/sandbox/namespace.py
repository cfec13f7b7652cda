"""The level *namespace*: bubblewrap with own namespaces, hidden places and a system call filter."""

import json
import os
import select
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daruma.tools.commands.launch import Asked, Launch, Limits, limited
from daruma.tools.sandbox.filters import namespace_filter
from daruma.tools.sandbox.git_control import Pinned, git_control
from daruma.tools.sandbox.hidden import seen
from daruma.tools.sandbox.memory_file import memory_file
from daruma.tools.sandbox.mounts import Kind, listening_sockets, mounts
from daruma.tools.sandbox.places import TEMPORARY

SECONDS: Final = 10.0
"""How long bubblewrap is waited for when it starts and when it ends."""

CLOSED_SIZE: Final = 16 * 1024 * 1024
"""Bytes that a place which is merely hidden may hold: folders on the way to what lies deeper."""

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

    @contextmanager
    def launch(self, workspace: Path, asked: Asked) -> Iterator[Launch]:
        """Prepare one command."""
        with ExitStack() as stack:
            pinned = stack.enter_context(git_control(workspace))
            filter_fd = stack.enter_context(memory_file(namespace_filter()))
            told, tell = os.pipe()
            inside = _Inside(told, tell)
            stack.callback(inside.close)
            argv = (
                *(self.program, *_FIXED, *(() if self.network else ("--unshare-net",))),
                *self._places(workspace, asked),
                *_pins(pinned),
                *_READ_ONLY,
                *("--chdir", str(asked.cwd)),
                *("--seccomp", str(filter_fd), "--info-fd", str(tell), "--"),
                *limited(asked.argv, self.limits.processes),
            )
            fds = (filter_fd, tell, *(each.fd for each in pinned))
            env = {name: value for name, value in asked.env.items() if name != "TMPDIR"}
            yield Launch(argv, env, fds, inside.started, inside.end, guarded=False)

    def _places(self, workspace: Path, asked: Asked) -> Iterator[str]:
        view = seen(asked.env)
        writable = {Path(os.path.realpath(place)) for place in TEMPORARY}
        size = max(self.limits.memory // 4, CLOSED_SIZE)
        yield from ("--size", str(size), "--tmpfs", "/dev/shm")  # noqa: S108
        for path, kind in mounts(view, workspace, listening_sockets()):
            if path.is_relative_to("/dev"):
                continue
            roomy = path == view.home or path in writable
            yield from _mount(path, kind, size if roomy else CLOSED_SIZE, open_=path in writable)


def _mount(path: Path, kind: Kind, size: int, *, open_: bool) -> Iterator[str]:
    if kind == "workspace":
        yield from ("--bind", str(path), str(path))
    elif kind == "shown":
        yield from ("--ro-bind-try", str(path), str(path))
    elif path.is_dir():
        mode = "1777" if open_ else "0755"
        yield from ("--perms", mode, "--size", str(size), "--tmpfs", str(path))
    else:
        yield from ("--ro-bind", os.devnull, str(path))


def _pins(pinned: list[Pinned]) -> Iterator[str]:
    for each in pinned:
        yield from ("--bind-fd" if each.writable else "--ro-bind-fd", str(each.fd), str(each.path))


class _Inside:
    """The first process inside: with it ends everything in there, at once."""

    def __init__(self, told: int, tell: int) -> None:
        self._told, self._tell = told, tell
        self._first: int | None = None

    def started(self, _: int) -> None:
        """Learn which process it is; bubblewrap that fails says none."""
        os.close(self._tell)
        self._tell = -1
        said = b""
        while select.select([self._told], [], [], SECONDS)[0] and (
            part := os.read(self._told, 4096)
        ):
            said += part
        with suppress(ValueError, KeyError, OSError):
            self._first = os.pidfd_open(json.loads(said)["child-pid"])

    def end(self) -> None:
        """Kill it and wait until the system has ended all others there."""
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            select.select([self._first], [], [], SECONDS)

    def close(self) -> None:
        """Let go of the descriptors."""
        for fd in (self._told, self._tell, self._first):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._first = None
