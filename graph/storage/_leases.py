"""Leases in Postgres, and whether the process that holds one is alive (DU-03)."""

import asyncio
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

from psycopg import Error

from daruma.graph.storage._database import Database
from daruma.graph.storage._ledgers import Hold
from daruma.graph.sync import on, run, running_loop
from daruma.state.data_dir import data_dir
from daruma.state.errors import StorageUnavailable, ThreadBusy
from daruma.tools.threads import to_thread

# --- Whether a process of this host is alive: known from a lock that the kernel drops with it.
#
# A thread whose process was killed can so be taken up at once, without waiting for its lease to
# end.

_OLD: Final = 24 * 3600
"""Seconds after which the file of a process that has ended is swept away."""


_LIVES: Final[dict[int, "ProcessLife"]] = {}
"""By the number of the process: a fork has those of its parents, too, and none of its own yet."""


@dataclass(frozen=True)
class ProcessLife:
    """A process, by name and number for people, and by the file that it keeps locked."""

    host: str
    pid: int
    boot: str
    file: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Read what :meth:`text` has written; None for anything else."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return None

    @property
    def text(self) -> str:
        """The form that is stored."""
        return json.dumps(asdict(self))

    @property
    def is_over(self) -> bool:
        """Whether the process has surely ended; False where that can not be told from here."""
        if not self.boot or self.boot != _boot():
            return False
        try:
            with Path(self.file).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False  # it is locked, or not to be seen from here
        return True


def own_life() -> ProcessLife:
    """Return that of this process; a child that was forked has one of its own."""
    pid = os.getpid()
    return _LIVES.get(pid) or _LIVES.setdefault(pid, _begun(pid))


def known_life() -> ProcessLife | None:
    """Return that of this process if it was begun: without a look at any file."""
    return _LIVES.get(os.getpid())


def _begun(pid: int) -> ProcessLife:
    folder = data_dir() / "alive"
    file = folder / uuid4().hex
    with suppress(OSError):  # without it, others wait until the lease is over
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            with suppress(OSError):
                if time.time() - old.stat().st_mtime > _OLD:
                    with old.open("rb") as opened:  # raises where it is locked
                        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    old.unlink()
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # kept open for as long as the process lives
    return ProcessLife(socket.gethostname(), pid, _boot(), str(file))


@cache
def _boot() -> str:
    """Tell this start of this machine from all others; empty where there is no way to."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


# --- Leases in Postgres: a row with a token for each thread that was ever run.

LEASE_SECONDS: Final = 30.0
"""How long a run may show no sign of life before its thread can be taken from it."""

SIGNS_OF_LIFE: Final = "daruma-signs-of-life"
"""The name of the tasks that keep leases alive."""

_TAKE: Final = """
INSERT INTO daruma_leases AS held (thread_id, token, run, holder, expires_at)
VALUES (%(thread)s, 1, %(run)s, %(holder)s, now() + make_interval(secs => %(seconds)s))
ON CONFLICT (thread_id) DO UPDATE SET
    token = held.token + 1, run = excluded.run, holder = excluded.holder,
    taken_at = now(), expires_at = excluded.expires_at
WHERE held.expires_at < now() OR held.run = excluded.run OR held.run = %(dead)s
RETURNING token, EXISTS (
    SELECT FROM daruma_steering AS sent WHERE sent.thread_id = %(thread)s
) AS steered
"""
_LOOK: Final = "SELECT run, holder, taken_at FROM daruma_leases WHERE thread_id = %(thread)s"
_KEEP: Final = """
UPDATE daruma_leases SET expires_at = now() + make_interval(secs => %(seconds)s)
WHERE thread_id = %(thread)s AND token = %(token)s AND expires_at > '-infinity'
RETURNING token
"""
_GIVE_BACK: Final = """
UPDATE daruma_leases SET expires_at = '-infinity', holder = ''
WHERE thread_id = %(thread)s AND token = %(token)s
"""

_GIVING_SECONDS: Final = 5.0
"""A database that does not take a lease back by then sees it end by itself."""
_LAST_SIGN_SECONDS: Final = 2.0
"""A sign of life that takes longer hangs: what gives the lease back may still get through."""

_LEFT: Final[set[str]] = set()
"""Runs of this process that have ended and could not say so, whichever pool they were over."""


class _Kept(NamedTuple):
    """A lease that is kept alive, until it is over."""

    over: "asyncio.Future[None]"
    keeping: "asyncio.Task[None]"

    async def ended(self) -> None:
        """End it; a sign of life that is on its way comes first, else its connection were lost."""
        self.over.set_result(None)
        try:
            await asyncio.wait([self.keeping], timeout=_LAST_SIGN_SECONDS)
        finally:
            self.keeping.cancel()


@dataclass(frozen=True)
class _Held:
    """A lease that somebody else has."""

    run: str = ""
    holder: str = ""
    taken_at: datetime | None = None

    def told(self, thread_id: str) -> str:
        """Say who has it."""
        life = ProcessLife.of(self.holder)
        who = f"process {life.pid} on {life.host}" if life else "another process"
        since = f" since {self.taken_at.astimezone():%H:%M:%S}" if self.taken_at else ""
        return (
            f"thread {thread_id!r} is being run by {who}{since}: wait until it has stopped, "
            "or stop it"
        )


class PostgresLeases:
    """The leases of a database; each that is held is kept alive by a task on its loop."""

    def __init__(self, database: Database, *, seconds: float = LEASE_SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._kept: dict[str, _Kept] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, thread_id: str) -> Hold:
        own = uuid4().hex
        with self._left_unless_heard_of(own):
            return run(self._taken(thread_id, own), loop=self._database.loop)

    async def atake(self, thread_id: str) -> Hold:
        own = uuid4().hex
        with self._left_unless_heard_of(own):
            return await on(self._database.loop, self._taken(thread_id, own))

    def give_back(self, hold: Hold) -> None:
        loop = self._database.loop
        if running_loop() is loop:  # an abandoned run, swept away on this very loop
            self._ending.add(ending := loop.create_task(self._given_back(hold)))
            ending.add_done_callback(self._ending.discard)
        elif loop.is_closed():  # swept away at the exit: the lease ends with its process
            _LEFT.add(hold.run)
        else:
            run(self._given_back(hold), loop=loop)

    async def agive_back(self, hold: Hold) -> None:
        if running_loop() is None:  # swept away after its own loop was closed
            self.give_back(hold)
            return
        await on(self._database.loop, self._given_back(hold))

    @contextmanager
    def _left_unless_heard_of(self, own: str) -> Iterator[None]:
        """Let nobody keep a lease alive that was taken while its caller was being cancelled."""
        try:
            yield
        except ThreadBusy:
            raise
        except BaseException:
            _LEFT.add(own)  # it may have been taken all the same
            with suppress(RuntimeError):  # a closed loop keeps nothing alive
                self._database.loop.call_soon_threadsafe(self._let_go, own)
            raise

    def _let_go(self, own: str) -> None:
        if kept := self._kept.pop(own, None):
            kept.keeping.cancel()

    async def _taken(self, thread_id: str, own: str) -> Hold:
        hold = await self._try(thread_id, own, "")
        if isinstance(hold, _Held) and await to_thread(self._is_over, hold):
            hold = await self._try(thread_id, own, hold.run)
        if isinstance(hold, _Held):
            raise ThreadBusy(hold.told(thread_id))
        over = self._database.loop.create_future()
        keeping = asyncio.create_task(self._keep(hold, over), name=SIGNS_OF_LIFE)
        self._kept[own] = _Kept(over, keeping)
        return hold

    async def close(self) -> None:
        """Show no more signs of life; what is held is over when its time is."""
        kept = [each.keeping for each in self._kept.values()]
        self._kept.clear()
        for each in kept:
            each.cancel()
        await asyncio.gather(*kept, return_exceptions=True)

    async def _try(self, thread_id: str, own: str, dead: str) -> "Hold | _Held":
        life = known_life()
        if life is None:  # it begins with a file that is locked
            life = await to_thread(own_life)
        values = {
            "thread": thread_id,
            "run": own,
            "holder": life.text,
            "seconds": self._seconds,
            "dead": dead,
        }
        taken = await self._database.statement(_TAKE, values)
        if taken:
            return Hold(thread_id, taken[0]["token"], own, taken[0]["steered"])
        held = await self._database.statement(_LOOK, values)
        return _Held(**held[0]) if held else _Held()

    def _is_over(self, held: "_Held") -> bool:
        life = ProcessLife.of(held.holder)
        return held.run in _LEFT or (life is not None and life.is_over)

    async def _keep(self, hold: Hold, over: "asyncio.Future[None]") -> None:
        """Show signs of life until it is over; the first that comes too late ends it."""
        values = {**_named(hold), "seconds": self._seconds}
        held = True
        while held:
            await asyncio.wait([over], timeout=self._seconds / 3)
            if over.done():
                return
            with suppress(StorageUnavailable):  # it may come back before somebody takes the thread
                held = bool(await self._database.statement(_KEEP, values))

    async def _given_back(self, hold: Hold) -> None:
        _LEFT.add(hold.run)
        kept = self._kept.pop(hold.run, None)
        with suppress(Error, TimeoutError, OSError, StorageUnavailable):
            async with asyncio.timeout(_GIVING_SECONDS):
                if kept:
                    await kept.ended()
                await self._database.statement(_GIVE_BACK, _named(hold))
            _LEFT.discard(hold.run)


def _named(hold: Hold) -> dict[str, Any]:
    return {"thread": hold.thread_id, "token": hold.token}
