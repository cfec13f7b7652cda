"""A command with all its children, to be ended together, also when this process is killed.

The leader of the group is not reaped before the group is killed: until then its number can not
have been given to another process.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from daruma.tools.commands.launch import Launch
from daruma.tools.errors import CommandRefused

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
            self._leader = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                pass_fds=self._launch.fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            self._dismiss_guard()
            raise _not_started(error, argv, cwd) from error
        self._pipes = [pipe for pipe in (self._leader.stdout, self._leader.stderr) if pipe]
        self.pid = self._leader.pid
        self.end_signal = _pidfd(self.pid)
        """A descriptor that turns readable when the leader ends; None where there is no such."""
        try:
            self._announce()
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
        self._kill()
        self._dismiss_guard()
        code = self._reap()
        self._await_others()
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

    def _announce(self) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.write(b"%d\n" % self.pid)
        self._launch.started(self.pid)

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader.pid, signal.SIGKILL)

    def _await_others(self) -> None:
        # Their parent reaps them, not we; where nobody does, the wait is bounded.
        deadline = time.monotonic() + GROUP_SECONDS
        with suppress(ProcessLookupError):
            while time.monotonic() < deadline:
                with suppress(PermissionError):
                    os.killpg(self._leader.pid, 0)
                time.sleep(0.001)

    def _reap(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self._leader.wait(REAP_SECONDS)
        return None


def _start_guard() -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", GUARD],
            cwd="/",
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise CommandRefused(f"no command can be started: {error.strerror}") from error


def _pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):
            return os.pidfd_open(pid)
    return None


def _not_started(error: OSError | ValueError, argv: Sequence[str], cwd: Path) -> CommandRefused:
    if not isinstance(error, OSError):
        return CommandRefused("the command holds a character that commands can not hold")
    if str(error.filename) == str(cwd):
        return CommandRefused(f"the directory {cwd} can not be entered: {error.strerror}")
    return CommandRefused(f"{argv[0]} can not be started: {error.strerror}")
