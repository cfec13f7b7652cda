"""The level *namespace*: bubblewrap with own namespaces, hidden places and a system call filter."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from daruma.tools.commands.descriptors import turns_readable
from daruma.tools.commands.launch import Asked, Launch, Limits, limited
from daruma.tools.sandbox.filters import namespace_filter
from daruma.tools.sandbox.git_control import git_control
from daruma.tools.sandbox.hidden import seen
from daruma.tools.sandbox.memory_file import memory_file
from daruma.tools.sandbox.mount_arguments import Places
from daruma.tools.sandbox.repositories import Repositories

SECONDS: Final = 10.0
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

    @contextmanager
    def launch(self, workspace: Path, asked: Asked) -> Iterator[Launch]:
        """Prepare one command."""
        with ExitStack() as stack:
            places = Places(seen(asked.env), workspace, self.limits.memory)
            repositories = self.repositories.of(workspace)
            pinned = stack.enter_context(git_control(workspace, repositories, places.inside))
            filter_fd = stack.enter_context(memory_file(namespace_filter()))
            told, tell = os.pipe()
            first = _First(told, tell)
            stack.callback(first.close)
            argv = (
                *(self.program, *_FIXED, *(() if self.network else ("--unshare-net",))),
                *places.arguments(pinned),
                *_READ_ONLY,
                *("--chdir", str(asked.cwd)),
                *("--seccomp", str(filter_fd), "--info-fd", str(tell), "--"),
                *limited(asked.argv, self.limits.processes),
            )
            fds = (filter_fd, tell, *(each.fd for each in pinned))
            env = {name: value for name, value in asked.env.items() if name != "TMPDIR"}
            yield Launch(argv, env, fds, first.started, first.end, guarded=False)


class _First:
    """The first process inside: with it ends everything in there, at once."""

    def __init__(self, told: int, tell: int) -> None:
        self._told, self._tell = told, tell
        self._first: int | None = None

    def started(self, _: int) -> None:
        """Learn which process it is; bubblewrap that fails says none."""
        os.close(self._tell)
        self._tell = -1
        said = b""
        while turns_readable(self._told, SECONDS) and (part := os.read(self._told, 4096)):
            said += part
        with suppress(ValueError, KeyError, OSError):
            self._first = os.pidfd_open(json.loads(said)["child-pid"])

    def end(self) -> None:
        """Kill it and wait until the system has ended all others there."""
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            turns_readable(self._first, SECONDS)

    def close(self) -> None:
        """Let go of the descriptors."""
        for fd in (self._told, self._tell, self._first):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._first = None
