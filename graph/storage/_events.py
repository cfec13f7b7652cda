"""What runs told, kept for a day, and waking those who wait for it (LISTEN)."""

import asyncio
import json
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count, groupby
from typing import Any, Final
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection

from daruma.graph.storage._database import Connection, Database, Pool
from daruma.graph.storage._sealing import Sealing
from daruma.graph.sync import on

# --- Waking those who wait for news of a thread, from whichever process the news comes (LISTEN).

CHANNEL: Final = "daruma_events"

_PAUSE: Final = 1.0
"""Seconds until a lost connection is made anew; who waits looks by himself meanwhile."""

_IDLE: Final = 10.0
"""Seconds between two looks whether anybody still listens."""


def ring_of(thread_id: str) -> str:
    """Return what is said on the channel of a thread: its name may be too long for it."""
    return blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_UNHEARD: Final = 1000
"""What is said and not taken up; of more the oldest is lost."""


class Ear:
    """Hears of one thread; news that came between two waits ends the next one at once."""

    def __init__(self, ring: str) -> None:
        self.ring = ring
        self._rung = asyncio.Event()
        self._said = deque[str](maxlen=_UNHEARD)

    def rung(self, said: str) -> None:
        """Wake who waits, with what is said to those who listen now, if anything."""
        if said:
            self._said.append(said)
        self._rung.set()

    def take(self) -> list[str]:
        """Return what was said since, on any thread."""
        return [self._said.popleft() for _ in range(len(self._said))]

    async def news(self, seconds: float) -> None:
        """Wait for news, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()


class Bell:
    """One connection, which listens for as long as anybody has an ear; all on the pool's loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._ears = WeakSet[Ear]()
        self._listening: asyncio.Task[None] | None = None

    async def ear(self, thread_id: str) -> Ear:
        """Return what hears of a thread, for as long as somebody keeps it."""
        self._ears.add(ear := Ear(ring_of(thread_id)))
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        return ear

    async def close(self) -> None:
        """Listen no longer."""
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        while self._ears:
            with suppress(psycopg.Error):
                await self._hear()
            await asyncio.sleep(_PAUSE)

    async def _hear(self) -> None:
        url = str(self._pool.conninfo)
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            for ear in [*self._ears]:
                ear.rung("")
            while self._ears:
                async for notice in connection.notifies(timeout=_IDLE):
                    ring, _, said = notice.payload.partition(" ")
                    for ear in [each for each in self._ears if each.ring == ring]:
                        ear.rung(said)


# --- What the runs of threads told while they went on, kept for a day for those who follow them.

KEPT: Final = 24 * 3600.0
"""Seconds that events are kept: they are for watching, nothing depends on them."""

EVENTS_AT_ONCE: Final = 500
"""Events that are read at once."""

_WRITE: Final = """
INSERT INTO daruma_events (thread_id, run, is_last, kind, event) VALUES (%s, %s, %s, %s, %s)
RETURNING id
"""
_RING: Final = "SELECT pg_notify(%s, %s)"
_READ: Final = """
SELECT id, run, kind, event FROM daruma_events
WHERE thread_id = %s AND id > %s ORDER BY id LIMIT %s
"""
_NEWEST: Final = "SELECT max(id) AS id FROM daruma_events WHERE thread_id = %s"
_NEWEST_STOP: Final = "SELECT max(id) AS id FROM daruma_events WHERE thread_id = %s AND is_last"
_STOP_BEFORE: Final = f"{_NEWEST_STOP} AND id < ({_NEWEST})"
_FORGET: Final = "DELETE FROM daruma_events WHERE told_at < now() - make_interval(secs => %s)"


@dataclass(frozen=True)
class StoredEvent:
    """An event of a ``run`` as a follower gets it; going on ``after`` its ``id`` misses nothing."""

    id: int
    event: dict[str, Any]
    run: str = ""

    @property
    def type(self) -> str:
        """The event's name."""
        return str(self.event.get("type", ""))


_PIECE: Final = 400
"""Characters of a text that fit into what Postgres passes on, 8,000 bytes, as sixteen each."""


def is_said(event: Mapping[str, Any]) -> bool:
    """Tell whether an event is for those who listen now, and not kept."""
    from daruma.state.events import ModelText  # not read to look at threads (FA-13)

    return event.get("type") == ModelText.type


class EventLog:
    """The events in Postgres, sealed where all is."""

    def __init__(self, database: Database, sealing: Sealing) -> None:
        self._database = database
        self._sealing = sealing
        self.bell = Bell(database.pool)
        self._pieces_told = count()

    async def write(
        self, thread_id: str, run: str, events: Sequence[Mapping[str, Any]], after: int = 0
    ) -> int:
        """Keep what a run has told, and wake who follows its thread, in any process.

        Return the id of the last event; ``after`` is that of the run's last one before. Words of a
        model go to who listens now, and are not kept: a row for each would cost what a step costs.
        """
        ring = ring_of(thread_id)

        async def write(connection: Connection) -> int:
            last = after
            async with connection.cursor() as cursor:
                for said, group in groupby(events, key=is_said):
                    if said:
                        for each in group:
                            for piece in self._pieces(thread_id, last, {**each, "run": run}):
                                await cursor.execute(_RING, [CHANNEL, f"{ring} {piece}"])
                        continue
                    rows = [self._row(thread_id, run, each) for each in group]
                    await cursor.executemany(_WRITE, rows, returning=True)
                    while cursor.nextset():
                        pass
                    last = (await cursor.fetchone() or {"id": last})["id"]
                await cursor.execute(_RING, [CHANNEL, ring])
            return last

        return await self._database.transact(write)

    def _row(self, thread_id: str, run: str, event: Mapping[str, Any]) -> tuple[Any, ...]:
        sealed = self._sealing.seal(("json", _packed(event)), (thread_id, "event", run))
        from daruma.state.events import RunStopped

        return thread_id, run, event.get("type") == RunStopped.type, *sealed

    def _pieces(self, thread_id: str, after: int, event: Mapping[str, Any]) -> Iterator[str]:
        """Yield words of a model as they are said: in pieces that Postgres passes on, sealed."""
        text = str(event["text"])
        for at in range(0, len(text), _PIECE):
            packed = _packed({**event, "text": text[at : at + _PIECE]})
            kind, payload = self._sealing.seal(("json", packed), (thread_id, "said"))
            # Of notifications that are the same in a transaction, Postgres passes on one.
            yield f"{after} {next(self._pieces_told)} {kind} {b64encode(payload).decode()}"

    def said(self, thread_id: str, piece: str) -> StoredEvent:
        """Read what was said: its id is that of the event before it.

        Raises :class:`~daruma.state.errors.DamagedState`.
        """
        after, _, kind, payload = piece.split(" ")
        value = self._sealing.open((kind, b64decode(payload)), (thread_id, "said"))
        event = json.loads(value[1])
        return StoredEvent(int(after), event, event.pop("run", ""))

    async def read(self, thread_id: str, after: int) -> list[StoredEvent]:
        """Return the next events of a thread, in their order.

        Raises :class:`~daruma.state.errors.DamagedState`.
        """

        async def read(connection: Connection) -> list[StoredEvent]:
            found = await connection.execute(_READ, [thread_id, after, EVENTS_AT_ONCE])
            return [self._heard(thread_id, row) for row in await found.fetchall()]

        return await self._database.transact(read)

    async def newest(self, thread_id: str) -> int:
        """Return the id of a thread's newest event; 0 for none."""
        return await self._found(_NEWEST, thread_id)

    async def newest_stop(self, thread_id: str) -> int:
        """Return the id of the event that ended the newest run to have ended; 0 for none."""
        return await self._found(_NEWEST_STOP, thread_id)

    async def of_newest_run(self, thread_id: str) -> list[StoredEvent]:
        """Return the events of a thread's newest run, ended or not."""
        before = await self._found(_STOP_BEFORE, thread_id, thread_id)
        heard: list[StoredEvent] = []
        while told := await self.read(thread_id, before):
            heard += told
            before = told[-1].id
        return heard

    async def forget(self, seconds: float = KEPT) -> None:
        """Delete what was told longer ago."""
        await self._database.statement(_FORGET, [seconds])

    async def _found(self, query: str, *values: str) -> int:
        (row,) = await self._database.statement(query, values)
        return int(row["id"] or 0)

    async def close(self) -> None:
        """Let go of the connection that listens, if there is one."""
        await on(self._database.loop, self.bell.close())

    def _heard(self, thread_id: str, row: Mapping[str, Any]) -> StoredEvent:
        value = (row["kind"], row["event"])
        _, packed = self._sealing.open(value, (thread_id, "event", row["run"]))
        return StoredEvent(row["id"], json.loads(packed), row["run"])


def _packed(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event, default=str).encode()
