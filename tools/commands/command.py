"""The one door through which commands are run: bounded, ended as a whole, never in the way.

Each command is watched by a thread of its own, so that any event loop will do, in any thread, and
minutes of waiting take no place from short work.
"""

import asyncio
import os
import shlex
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daruma.tools.commands.command_watch import Watched, watch
from daruma.tools.commands.environment import command_environment
from daruma.tools.commands.launch import UNCONFINED, Asked, Confinement
from daruma.tools.commands.live_output import LiveOutput
from daruma.tools.commands.process_group import ProcessGroup
from daruma.tools.commands.watchdog import Excess, Watchdog
from daruma.tools.errors import CommandRefused
from daruma.tools.files.threads import ended

LIMIT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended; `exit_code` is None when it was stopped, negative for a signal.

    `stdout` and `stderr` hold the beginning and the end of the output; `truncated` if the middle
    is missing. `sandbox` names what confined the command, `not_covered` what that does not stop;
    `stopped_by` says which limit it was killed for.
    """

    command: str
    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    truncated: bool
    seconds: float
    sandbox: str
    not_covered: tuple[str, ...] = ()
    stopped_by: Excess = ""

    @property
    def passed(self) -> bool:
        """Whether the command ended by itself and with code 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class _Order:
    text: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] | None
    timeout: float
    limit: int
    confinement: Confinement
    live: LiveOutput | None = None


async def run_in_group(
    command: str | Sequence[str],
    *,
    cwd: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    limit: int = LIMIT,
    confinement: Confinement = UNCONFINED,
    live: LiveOutput | None = None,
) -> CommandResult:
    """Run shell text (a string) or an argument list, and everything it starts, to the end.

    Whatever is left of its process group after `timeout` seconds, after the command's own end, or
    on cancellation is killed, before this returns. `limit` is in bytes for each stream. Without
    `env` the command gets `command_environment`, never this process's own variables. `live` is told
    of the output while it runs.

    Raises CommandRefused if it can not be started.
    """
    text, argv = _spelled(command)
    order = _Order(text, argv, cwd, env, timeout, limit, confinement, live)
    future: Future[CommandResult] = Future()
    stopped, stop = _pipe()  # closing `stop` ends the command
    watcher = threading.Thread(
        target=_fulfil, args=(future, order, stopped), name="daruma-command", daemon=True
    )
    result = asyncio.wrap_future(future)
    try:
        start(watcher, future, stopped)
        return await asyncio.shield(result)
    finally:
        os.close(stop)
        await ended(result)


def _spelled(command: str | Sequence[str]) -> tuple[str, tuple[str, ...]]:
    text = command if isinstance(command, str) else shlex.join(command)
    if not text.strip():
        raise CommandRefused("the command is empty")
    return text, ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)


def _pipe() -> tuple[int, int]:
    try:
        return os.pipe()
    except OSError as error:
        raise CommandRefused(f"no command can be started: {error.strerror}") from error


def start(watcher: threading.Thread, future: "Future[CommandResult]", stopped: int) -> None:
    """Start a thread that closes ``stopped``; without one it is closed here, and ``future`` fails.

    An interruption (Ctrl-C) can come when the thread runs already: then it is not ours to close.
    """
    try:
        watcher.start()
    except RuntimeError:
        os.close(stopped)
        future.set_exception(CommandRefused("no command can be started: there are no more threads"))


def _fulfil(future: "Future[CommandResult]", order: _Order, stopped: int) -> None:
    future.set_running_or_notify_cancel()
    try:
        try:
            result = _run(order, stopped)
        except OSError as error:
            raise CommandRefused(f"the command can not be run: {error.strerror}") from error
        finally:
            os.close(stopped)
    except BaseException as error:  # noqa: BLE001 - it is raised where the command was asked for
        future.set_exception(error)
    else:
        future.set_result(result)


def _run(order: _Order, stopped: int) -> CommandResult:
    began = time.monotonic()
    confinement, env = order.confinement, order.env
    if env is None:
        env = command_environment(os.environ, order.cwd, Path(sys.executable).parent)
    with (
        confinement.launch(Asked(order.argv, order.cwd, env)) as launch,
        ProcessGroup(launch.argv, order.cwd, launch.env, launch) as group,
    ):
        watchdog = Watchdog(group.pid, confinement.limits)
        seen = watch(group, stopped, began + order.timeout, order.limit, watchdog, order.live)
    return _result(order, seen, time.monotonic() - began)


def _result(order: _Order, seen: Watched, seconds: float) -> CommandResult:
    limit_hit = seen.ending if seen.ending in ("memory", "processes") else ""
    return CommandResult(
        command=order.text,
        exit_code=seen.exit_code if seen.ending == "ended" else None,
        stdout=seen.stdout.text(),
        stderr=seen.stderr.text(),
        timed_out=seen.ending == "timed_out",
        truncated=seen.stdout.truncated or seen.stderr.truncated,
        seconds=seconds,
        sandbox=order.confinement.level,
        not_covered=order.confinement.not_covered,
        stopped_by=limit_hit,
    )
