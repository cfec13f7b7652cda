"""The one door to storage: the Postgres given, the environment's, or the embedded one."""

import asyncio
import atexit
import base64
import binascii
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from daruma.graph.learning_jobs import adrain_place
from daruma.graph.storage._database import (
    MOST_CONNECTIONS,
    OUTAGE_VARIABLE,
    Database,
    Patience,
    Pool,
    connected,
    display_url,
    explained,
    seconds_of,
)
from daruma.graph.storage._journal import OpenQuestion, read_inbox
from daruma.graph.storage._pruning import OldThread, Pruned, Wanted, old_threads, prune, written_at
from daruma.graph.storage._saver import PostgresSaver
from daruma.graph.storage._sealing import Checked, Sealed, Sealing
from daruma.graph.storage._store import PostgresStore
from daruma.graph.sync import run
from daruma.state.errors import DamagedState, DarumaError, KeyRefused
from daruma.state.serializer import STORED_TYPES, StrictSerializer
from daruma.tools.threads import entered_in_thread

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from daruma.state.settings import LLM

# --- The key of a database, and whether it is the right one.

_BYTES: Final = 32
_PLACE: Final = ("", "proof")
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('daruma.seal'))"
_KNOWN: Final = "SELECT kind, proof FROM daruma_seal"
_USED: Final = "SELECT FROM daruma_checkpoints LIMIT 1"
_NOTE: Final = "INSERT INTO daruma_seal (kind, proof) VALUES (%s, %s)"


def key_bytes(given: str | bytes) -> bytes:
    """Read a key: 32 bytes as they are, or as text in base64 or hex.

    Raises :class:`~daruma.state.errors.KeyRefused`, which does not quote it.
    """
    key = given if isinstance(given, bytes) else _decoded(given.strip())
    if len(key) != _BYTES:
        raise KeyRefused(
            "the key that seals state must be 32 bytes, in base64 or hex: "
            "`openssl rand -base64 32` makes one for DARUMA_POSTGRES_KEY"
        )
    return key


def _decoded(text: str) -> bytes:
    try:
        if len(text) == 2 * _BYTES:
            return bytes.fromhex(text)
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (ValueError, binascii.Error):
        return b""


async def sealing_of(pool: Pool, given: str | bytes | None) -> Sealing:
    """Return how a database's values are wrapped: sealed under the key given, if there is one.

    None reads ``DARUMA_POSTGRES_KEY``. A database is sealed as a whole, from its first thread on;
    it holds a proof of its key. Raises :class:`~daruma.state.errors.KeyRefused`.
    """
    given = given or os.environ.get("DARUMA_POSTGRES_KEY") or None
    sealed = Sealed(key_bytes(given)) if given else None
    async with pool.connection() as connection, connection.transaction():
        if sealed:
            await connection.execute(_LOCK)
        row = await (await connection.execute(_KNOWN)).fetchone()
        if sealed is None:
            if row:
                raise KeyRefused("this database is sealed: set DARUMA_POSTGRES_KEY to its key")
            return Checked()
        if row:
            try:
                sealed.open((row["kind"], row["proof"]), _PLACE)
            except DamagedState:
                raise KeyRefused(
                    "this database is sealed with another key: set DARUMA_POSTGRES_KEY to its own"
                ) from None
        elif (await connection.execute(_USED)).rowcount:
            raise KeyRefused(
                "this database holds threads in clear: go on without DARUMA_POSTGRES_KEY, or take "
                "a new database for what is to be sealed"
            )
        else:
            await connection.execute(_NOTE, sealed.seal(("proof", b""), _PLACE))
    return sealed


# --- The one door to storage: the Postgres given, the environment's, or the embedded one.

_THREADS = """
SELECT newest.*, checkpoint ->> 'ts' AS ts
FROM (
    SELECT thread_id, max(checkpoint_id) AS checkpoint_id, count(*) AS checkpoints
    FROM daruma_checkpoints WHERE checkpoint_ns = ''
    GROUP BY thread_id ORDER BY max(checkpoint_id) DESC LIMIT %s
) AS newest JOIN daruma_checkpoints USING (thread_id, checkpoint_id)
WHERE checkpoint_ns = '' ORDER BY checkpoint_id DESC
"""


@dataclass(frozen=True)
class ThreadRow:
    """One thread: its newest checkpoint, when that was written, and how many it has."""

    thread_id: str
    checkpoint_id: str
    updated_at: datetime
    checkpoints: int


@dataclass(frozen=True)
class Postgres:
    """An open database. ``display_url`` has no password; ``embedded`` says that it is our own."""

    checkpointer: PostgresSaver
    store: PostgresStore
    pool: Pool = field(repr=False)
    display_url: str
    server_version: str
    embedded: bool

    def store_for(self, llm: "LLM") -> PostgresStore:
        """Return the store, finding by meaning with the embedding model of settings, if any.

        Raises :class:`~daruma.graph.models.ModelUnavailable`.
        """
        if llm.embedding_model is None:
            return self.store
        from daruma.graph.models import resolve_embeddings

        model = resolve_embeddings(llm.embedding_model, llm.model_aliases)
        return self.store.with_embeddings(model)

    def threads(self, limit: int = 50) -> list[ThreadRow]:
        """Return the threads, the one written last first."""
        return run(self.athreads(limit), loop=self.checkpointer.loop)

    async def athreads(self, limit: int = 50) -> list[ThreadRow]:
        """Return the threads, the one written last first, on any event loop."""
        rows = await self.checkpointer.database.statement(_THREADS, [limit])
        times = [written_at(row["checkpoint_id"], row.pop("ts")) for row in rows]
        return [ThreadRow(**row, updated_at=at) for row, at in zip(rows, times, strict=True)]

    def inbox(self, *, kind: str | None = None, older_than: float = 0.0) -> list[OpenQuestion]:
        """Return what waits for a person, over all threads, what has waited longest first.

        Of one ``kind`` if that is given, and of what has waited for ``older_than`` seconds. What it
        takes does not grow with the threads that have ended. A clarification that ended its turn
        is no question: it waits for the next message.
        """
        return run(self.ainbox(kind=kind, older_than=older_than), loop=self.checkpointer.loop)

    async def ainbox(
        self, *, kind: str | None = None, older_than: float = 0.0
    ) -> list[OpenQuestion]:
        """Do the same on any event loop."""
        return await read_inbox(self.checkpointer, kind=kind, older_than=older_than)

    def old_threads(
        self, older_than: float, *, status: Collection[str] | None = None, unfinished: bool = False
    ) -> list[OldThread]:
        """Return the threads that :meth:`prune` would delete, the oldest first."""
        wanted = Wanted(older_than, status, unfinished)
        return run(old_threads(self.checkpointer, wanted), loop=self.checkpointer.loop)

    def prune(
        self,
        older_than: float,
        *,
        status: Collection[str] | None = None,
        unfinished: bool = False,
        keep_history: bool = False,
        full: bool = False,
        only: Collection[str] | None = None,
    ) -> Pruned:
        """Delete the threads that nobody wrote on for ``older_than`` seconds, and free their space.

        ``status`` names the statuses of those that go; None: of all that have ended. One that waits
        for a person or has unfinished work goes with ``unfinished`` only, one that is being run
        never. With ``keep_history`` threads stay as they stand, and what came before goes. ``full``
        gives the space back to the disk, and locks each table meanwhile. ``only`` are the threads
        that may go, None for all. Items of the store stay: they are no thread's.
        """
        pruning = self.aprune(
            older_than,
            status=status,
            unfinished=unfinished,
            keep_history=keep_history,
            full=full,
            only=only,
        )
        return run(pruning, loop=self.checkpointer.loop)

    async def aprune(
        self,
        older_than: float,
        *,
        status: Collection[str] | None = None,
        unfinished: bool = False,
        keep_history: bool = False,
        full: bool = False,
        only: Collection[str] | None = None,
    ) -> Pruned:
        """Do the same on any event loop."""
        wanted, saver = Wanted(older_than, status, unfinished), self.checkpointer
        found = await old_threads(saver, wanted)
        found = [each for each in found if only is None or each.thread_id in only]
        return await prune(saver, found, wanted=wanted, keep_history=keep_history, full=full)


class NotOpened(DarumaError, AttributeError, TypeError):
    """Raised for a database that is used without being opened, or is opened the other way."""


class Opening:
    """What ``open_postgres`` and its kin return: who does not open it with ``with`` is told how."""

    def __init__(self, opening: object, how: str) -> None:
        self._opening, self._how, self._entered = opening, how, False

    def __enter__(self) -> Any:
        return self._enter("__enter__")

    def __exit__(self, *error: Any) -> Any:
        return self._by("__exit__")(*error)

    def __aenter__(self) -> Any:
        return self._enter("__aenter__")

    def __aexit__(self, *error: Any) -> Any:
        return self._by("__aexit__")(*error)

    def __getattr__(self, name: str) -> NoReturn:
        raise NotOpened(f"there is no {name} before the database is open: {self._how}")

    def __await__(self) -> NoReturn:
        raise NotOpened(f"it is opened otherwise: {self._how}")

    def _enter(self, name: str) -> Any:
        enter = self._by(name)
        if self._entered:
            raise NotOpened(f"it was opened before, and opens once: {self._how}")
        self._entered = True
        return enter()

    def _by(self, name: str) -> Any:
        found = getattr(self._opening, name, None)
        if found is None:
            raise NotOpened(f"it is opened otherwise: {self._how}")
        return found


F = TypeVar("F", bound=Callable[..., Any])


def opened(how: str) -> Callable[[F], F]:
    """Have what a function returns say ``how`` it is opened to whoever does it otherwise."""

    def telling(function: F) -> F:
        @wraps(function)
        def opening(*args: Any, **options: Any) -> Opening:
            return Opening(function(*args, **options), how)

        return cast("F", opening)

    return telling


@opened("`with open_postgres() as postgres:`, or in async code `async with aopen_postgres()`")
@contextmanager
def open_postgres(
    url: str | None = None,
    *,
    key: str | bytes | None = None,
    outage_seconds: float | None = None,
    embeddings: "Embeddings | str | None" = None,
    connections: int = MOST_CONNECTIONS,
) -> Iterator[Postgres]:
    """Open the database for synchronous callers; what it yields works in async ones too (DU-01).

    ``url``, else ``DARUMA_POSTGRES_URL``, else the embedded server. With a ``key``, else
    ``DARUMA_POSTGRES_KEY``, all state is sealed: 32 bytes, or these in base64 or hex. A database
    that is lost, now or later on, is waited for, for ``outage_seconds``, else
    ``DARUMA_POSTGRES_OUTAGE_SECONDS``, else 60; one that nobody answers for at first, for 5 s at
    most. Before it is closed, what is still to be learned of
    ended tasks is waited for, 5 s at most. With ``embeddings``, LangChain's or
    ``"openai:NAME"``, the store finds by meaning too. At most so many ``connections`` are open at
    once, and more of what runs at once waits for one.

    Raises :class:`StorageUnavailable`, :class:`~daruma.state.errors.KeyRefused`,
    :class:`~daruma.state.settings.SettingsError` for a number of seconds that is none, and
    :class:`~daruma.graph.models.ModelUnavailable` for an embedding model that is none.
    """
    given: Any = {"outage_seconds": outage_seconds, "connections": connections}
    opening = aopen_postgres(url, key=key, embeddings=embeddings, **given)
    own = os.getpid()

    def close(*error: Any) -> bool | None:
        """Close what this process has opened: a fork of it has a copy, which nobody carries on."""
        return run(opening.__aexit__(*error)) if os.getpid() == own else None

    def end() -> None:
        """Close it at the exit if that comes first, as in a notebook that is shut down."""
        with suppress(DarumaError):  # a lost database: there is nobody left to be told
            stack.close()

    with ExitStack() as stack:
        postgres = run(opening.__aenter__())
        stack.push(close)
        stack.callback(atexit.unregister, end)
        atexit.register(end)
        yield postgres


@opened("`async with aopen_postgres() as postgres:`, or elsewhere `with open_postgres()`")
@asynccontextmanager
async def aopen_postgres(
    url: str | None = None,
    *,
    key: str | bytes | None = None,
    outage_seconds: float | None = None,
    embeddings: "Embeddings | str | None" = None,
    connections: int = MOST_CONNECTIONS,
) -> AsyncIterator[Postgres]:
    """Open the database on the running event loop; its synchronous methods work on other threads.

    What it takes and raises is that of :func:`open_postgres`.
    """
    named = url or os.environ.get("DARUMA_POSTGRES_URL", "")
    seconds = seconds_of(outage_seconds, os.environ.get(OUTAGE_VARIABLE, ""))
    meaning = None
    if embeddings:
        from daruma.graph.models import resolve_embeddings

        meaning = resolve_embeddings(embeddings, {})
    async with AsyncExitStack() as stack:
        used = named or await stack.enter_async_context(_embedded())
        opening = connected(used, outage_seconds=seconds, connections=connections)
        pool, version = await stack.enter_async_context(opening)
        shown = display_url(used)
        patience = Patience(seconds, f"Postgres at {shown}")
        database = Database(pool, asyncio.get_running_loop(), patience)
        with explained(shown):
            sealing = await database.patiently(lambda: sealing_of(pool, key))
        saver = PostgresSaver(database, StrictSerializer(STORED_TYPES), sealing)
        stack.push_async_callback(saver.own_leases.close)
        stack.push_async_callback(saver.events.close)
        store = PostgresStore(database, sealing, meaning)
        stack.push_async_callback(adrain_place, database)
        yield Postgres(saver, store, pool, shown, version, embedded=not named)


@asynccontextmanager
async def _embedded() -> AsyncIterator[str]:
    from daruma.graph.storage._embedded import embedded_postgres

    async with entered_in_thread(embedded_postgres()) as conninfo:
        yield conninfo
