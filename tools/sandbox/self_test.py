"""Proving a level: a probe tries to break out under the real policy; what it reached is listed."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from daruma.tools.commands.launch import Limits
from daruma.tools.errors import CommandRefused
from daruma.tools.files.threads import entered_in_thread, in_thread, to_thread
from daruma.tools.sandbox.level import Level
from daruma.tools.sandbox.sandbox import Sandbox
from daruma.tools.sandbox.trap import Trap

SECONDS: Final = 10.0
PROCESSES: Final = 16

_PROBE: Final = Path(__file__).with_name("probe.py")
_FORKS: Final = f"""import os, time
for _ in range({4 * PROCESSES}):
    if os.fork() == 0:
        break
time.sleep({SECONDS})"""

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


class NotProved(Exception):
    """Raised when a level does not hold what it stands for; the text says what, in a few words."""


class Leaks(NotProved):
    """Raised when a level runs commands, but attempts come through that it must stop."""


async def proved(sandbox: Sandbox, *, network: bool) -> Sandbox:
    """Return the sandbox with what it does not cover. Raises :class:`NotProved`."""
    found = await reached(sandbox)
    if missing := found - _may_be_open(sandbox.level, network=network):
        raise Leaks("does not stop " + ", ".join(_in_words(missing)))
    allowed = ("the network, which the settings allow",) if network else ()
    left = found - NETWORK if network else found
    return replace(sandbox, not_covered=(*allowed, *_in_words(left)))


async def reached(sandbox: Sandbox) -> set[str]:
    """Return the names of all attempts that come through. Raises :class:`NotProved`."""
    async with entered_in_thread(_laid_out()) as trap:
        code = await to_thread(_PROBE.read_text, encoding="utf-8")
        probe = (sys.executable, "-I", "-S", "-c", code, json.dumps(trap.target))
        forks = (sys.executable, "-I", "-S", "-c", _FORKS)
        few = replace(sandbox, limits=Limits(sandbox.limits.memory, PROCESSES))
        try:
            said, forked = await asyncio.gather(
                sandbox.run(probe, workspace=trap.workspace, timeout=SECONDS),
                few.run(forks, workspace=trap.workspace, timeout=SECONDS / 2),
            )
        except CommandRefused as error:
            raise NotProved(str(error)) from None
        if not said.passed:
            raise NotProved(f"can not run a command: {_last_line(said.stderr) or 'it ended'}")
        open_ = await in_thread(trap.open, json.loads(said.stdout))
    return open_ if forked.stopped_by == "processes" else open_ | {"processes"}


@contextmanager
def _laid_out() -> Iterator[Trap]:
    with ExitStack() as stack:
        outside = Path(stack.enter_context(_folder(Path.home())))
        workspace = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="daruma-")))
        yield Trap(outside, workspace.resolve(), stack)


def _folder(at: Path) -> "tempfile.TemporaryDirectory[str]":
    try:
        return tempfile.TemporaryDirectory(prefix=".daruma-self-test-", dir=at)
    except OSError:
        return tempfile.TemporaryDirectory(prefix="daruma-self-test-")


def _may_be_open(level: Level, *, network: bool) -> frozenset[str]:
    allowed = NETWORK if network else frozenset()
    return allowed | NOT_AT_LANDLOCK if level == "landlock" else allowed


def _in_words(names: set[str]) -> tuple[str, ...]:
    return tuple(words for name, words in WORDS.items() if name in names)


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else ""
