"""Watching a command from its start to its end, its output read all the while."""

import os
import selectors
import time
from dataclasses import dataclass
from typing import Final, Literal

from daruma.tools.commands.command_output import Kept
from daruma.tools.commands.live_output import LiveOutput
from daruma.tools.commands.process_group import ProcessGroup
from daruma.tools.commands.watchdog import Watchdog

DRAIN_SECONDS: Final = 0.25
"""How long the pipes are read on after the end, if someone who left the group holds them open."""

POLL_SECONDS: Final = 0.02  # only where the system does not signal a process's end
LONGEST_WAIT: Final = 3600.0  # seconds that every system's select can express
PIECE: Final = 64 * 1024

Ending = Literal["ended", "timed_out", "stopped", "memory", "processes"]
Ready = list[tuple[selectors.SelectorKey, int]]


@dataclass(frozen=True, slots=True)
class Watched:
    """How the command ended, the leader's exit code, and what it wrote."""

    ending: Ending
    exit_code: int | None
    stdout: Kept
    stderr: Kept


def watch(
    group: ProcessGroup,
    stop: int,
    deadline: float,
    limit: int,
    watchdog: Watchdog,
    live: LiveOutput | None = None,
) -> Watched:
    """Block until the command has ended and all of its group is killed.

    It is ended at `deadline` (`time.monotonic`), when the descriptor `stop` turns readable, or when
    the watchdog sees too much. ``live`` is told of the output meanwhile.
    """
    heard = live.add if live else None
    stdout, stderr = Kept(limit, heard), Kept(limit, heard)
    with selectors.DefaultSelector() as selector:
        for fd, kept in zip(group.outputs, (stdout, stderr), strict=True):
            selector.register(fd, selectors.EVENT_READ, kept)
        signals = [stop] if group.end_signal is None else [stop, group.end_signal]
        for fd in signals:
            selector.register(fd, selectors.EVENT_READ)
        ending = _until_end(group, selector, stop, deadline, watchdog, live)
        code = group.end()
        for fd in signals:
            selector.unregister(fd)
        _drain(selector)
    return Watched(ending, code, stdout, stderr)


def _until_end(
    group: ProcessGroup,
    selector: selectors.BaseSelector,
    stop: int,
    deadline: float,
    watchdog: Watchdog,
    live: LiveOutput | None,
) -> Ending:
    longest = LONGEST_WAIT if group.end_signal is not None else POLL_SECONDS
    while not group.has_ended():
        left = deadline - time.monotonic()
        if left <= 0:
            return "timed_out"
        if excess := watchdog.excess():
            return excess
        wait = min(left, longest, watchdog.wait())
        ready = selector.select(min(wait, live.wait()) if live else wait)
        if any(key.fd == stop for key, _ in ready):
            return "stopped"
        _read(selector, ready)
        if live:
            live.tell()
    return "ended"


def _drain(selector: selectors.BaseSelector) -> None:
    deadline = time.monotonic() + DRAIN_SECONDS
    while selector.get_map() and (left := deadline - time.monotonic()) > 0:
        _read(selector, selector.select(left))


def _read(selector: selectors.BaseSelector, ready: Ready) -> None:
    for key, _ in ready:
        if not isinstance(key.data, Kept):
            continue
        if data := os.read(key.fd, PIECE):
            key.data.add(data)
        else:
            selector.unregister(key.fd)
