"""Leases: one thread is run by one run at a time, wherever that is (DU-03).

A lease has a token that only grows. Who has lost its lease, by being frozen or cut off for longer
than that lasts, still holds the old token, and can not write with it.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from daruma.state.errors import ThreadBusy


@dataclass(frozen=True)
class Hold:
    """A lease that was taken: the thread, the token to write with, and the run that has it."""

    thread_id: str
    token: int
    run: str


@runtime_checkable
class Leases(Protocol):
    """Where leases are taken. Taking one raises :class:`~daruma.state.errors.ThreadBusy`."""

    def take(self, thread_id: str) -> Hold:
        """Take the lease of a thread, and keep it alive until it is given back."""

    async def atake(self, thread_id: str) -> Hold:
        """The same, asynchronous."""

    def give_back(self, hold: Hold) -> None:
        """Give it back, if it is still held; never raises for a database that is lost."""

    async def agive_back(self, hold: Hold) -> None:
        """The same, asynchronous."""


class ProcessLeases:
    """Leases within this process, for checkpointers that have no place for them."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        self._lock = Lock()

    def take(self, thread_id: str) -> Hold:
        hold = Hold(thread_id, 0, uuid4().hex)
        with self._lock:
            if self._runs.setdefault(thread_id, hold.run) != hold.run:
                raise ThreadBusy(
                    f"thread {thread_id!r} is being run in this process: wait until that has ended"
                )
        return hold

    async def atake(self, thread_id: str) -> Hold:
        return self.take(thread_id)

    def give_back(self, hold: Hold) -> None:
        with self._lock:
            if self._runs.get(hold.thread_id) == hold.run:
                del self._runs[hold.thread_id]

    async def agive_back(self, hold: Hold) -> None:
        self.give_back(hold)


def leases_of(checkpointer: Any) -> Leases:
    """Return where a checkpointer's leases are: its own place, else one in this process.

    The latter goes with the object, so that all graphs over one checkpointer know who runs.
    """
    own = getattr(checkpointer, "leases", None)
    if isinstance(own, Leases):
        return own
    made: Leases = checkpointer.__dict__.setdefault("leases", ProcessLeases())
    return made
