"""What a command and all its children use at the moment, as the system counts it."""

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, slots=True)
class Process:
    """A line of the system's process table."""

    pid: int
    parent: int
    session: int


def members(leader: int) -> list[int]:
    """Return the ids of a process, its descendants, and the others of its session.

    Empty where the system has no process table that can be read.
    """
    table = [each for each in map(_process, _pids()) if each]
    children: dict[int, list[int]] = defaultdict(list)
    for each in table:
        children[each.parent].append(each.pid)
    found = {each.pid for each in table if leader in (each.pid, each.session)}
    todo = list(found)
    while todo:
        new = set(children[todo.pop()]) - found
        found |= new
        todo.extend(new)
    return sorted(found)


def memory(pids: list[int], limit: int) -> int:
    """Return the memory of processes in bytes; shared pages count once if it may be above `limit`.

    To tell whose pages are shared is slow, and not done while the sum with all of them is below.
    """
    at_most = sum(map(_resident, pids))
    return at_most if at_most <= limit else sum(map(_proportional, pids))


def _pids() -> list[int]:
    try:
        return [int(each.name) for each in os.scandir(_PROC) if each.name.isdigit()]
    except OSError:
        return []


def _process(pid: int) -> Process | None:
    with suppress(OSError, ValueError, IndexError):
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return Process(pid, int(fields[1]), int(fields[3]))
    return None


def _resident(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int((_PROC / str(pid) / "statm").read_bytes().split()[1]) * _PAGE
    return 0


def _proportional(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        lines = (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return _resident(pid)
