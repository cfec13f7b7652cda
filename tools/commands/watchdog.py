"""Limits of memory and processes, held by looking at what a command uses every now and then."""

import time
from typing import Final, Literal

from daruma.tools.commands.launch import Limits
from daruma.tools.commands.usage import members, memory

INTERVAL: Final = 0.1
"""Seconds between two looks, at first and at least."""

SHARE: Final = 0.05
"""How much of a processor's time the looking may take."""

Excess = Literal["", "memory", "processes"]


class Watchdog:
    """Looks at one command's processes. Without limits it never looks."""

    def __init__(self, leader: int, limits: Limits | None) -> None:
        self._leader = leader
        self._limits = limits
        self._next = time.monotonic() + INTERVAL

    def wait(self) -> float:
        """Return for how many seconds there is nothing to do."""
        return max(0.0, self._next - time.monotonic()) if self._limits else float("inf")

    def excess(self) -> Excess:
        """Return what is exceeded, if it is time to look."""
        if self._limits is None or self.wait() > 0:
            return ""
        began = time.monotonic()
        found = _excess(self._leader, self._limits)
        now = time.monotonic()
        self._next = now + max(INTERVAL, (now - began) / SHARE)
        return found


def _excess(leader: int, limits: Limits) -> Excess:
    pids = members(leader)
    if len(pids) > limits.processes:
        return "processes"
    return "memory" if memory(pids, limits.memory) > limits.memory else ""
