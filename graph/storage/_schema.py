"""What is ours in the database, beside LangGraph's own tables, and making it."""

from typing import Any, Final

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable

from daruma.state.errors import OtherFormat

# --- What is ours in the database, beside LangGraph's own tables.
#
# Everything here can be made again over what is there.

_REPLIES: Final = """
CREATE TABLE IF NOT EXISTS daruma_replies (
    thread_id text NOT NULL,
    interrupt_id text NOT NULL,
    kind text NOT NULL,
    reply bytea NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (thread_id, interrupt_id)
)
"""
_ACCEPTANCE: Final = """
ALTER TABLE daruma_replies ADD COLUMN IF NOT EXISTS acceptance text NOT NULL DEFAULT ''
"""
_LEASES: Final = """
CREATE TABLE IF NOT EXISTS daruma_leases (
    thread_id text PRIMARY KEY,
    token bigint NOT NULL,
    run text NOT NULL,
    holder text NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
)
"""
_FENCE: Final = """
CREATE OR REPLACE FUNCTION daruma_fence(thread text, held bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM daruma_leases WHERE thread_id = thread AND token = held FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'DR001';
    END IF;
END
$$
"""
_EFFECTS: Final = """
CREATE TABLE IF NOT EXISTS daruma_effects (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL,
    checkpoint_id text NOT NULL,
    call text NOT NULL,
    digest text NOT NULL,
    run text NOT NULL,
    key text NOT NULL,
    settles text NOT NULL,
    workspace text NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    kind text,
    outcome bytea,
    began_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    PRIMARY KEY (thread_id, call, digest, checkpoint_ns, checkpoint_id)
)
"""
_SEAL: Final = """
CREATE TABLE IF NOT EXISTS daruma_seal (
    alone boolean PRIMARY KEY DEFAULT true CHECK (alone),
    kind text NOT NULL,
    proof bytea NOT NULL
)
"""
_OUTPUTS: Final = """
CREATE TABLE IF NOT EXISTS daruma_outputs (
    thread_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    output bytea NOT NULL,
    kept_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (thread_id, id)
)
"""
_ITEMS: Final = """
CREATE TABLE IF NOT EXISTS daruma_items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    value bytea NOT NULL,
    words tsvector NOT NULL,
    length integer NOT NULL,
    meant text NOT NULL,
    fields text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (namespace, key)
) WITH (toast_tuple_target = 8160)
"""
"""Words are kept in the row as they are: to unpack them for each item that is ranked takes long."""

_WORDS: Final = """
CREATE INDEX IF NOT EXISTS daruma_items_words ON daruma_items USING gin (words)
WITH (fastupdate = off)
"""
"""Without what Postgres would put off: each look-up would read all of that, page by page."""

_EVENTS: Final = """
CREATE TABLE IF NOT EXISTS daruma_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread_id text NOT NULL,
    run text NOT NULL,
    is_last boolean NOT NULL,
    kind text NOT NULL,
    event bytea NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now()
)
"""
_EVENTS_OF: Final = """
CREATE INDEX IF NOT EXISTS daruma_events_of ON daruma_events (thread_id, id)
"""
_ENDS: Final = """
CREATE INDEX IF NOT EXISTS daruma_events_ends ON daruma_events (thread_id, run, id) WHERE is_last
"""
"""Few rows: who follows a thread asks for its ends at each event, however many there were."""

_NO_SECOND_INDEXES: Final = """
DROP INDEX IF EXISTS
    checkpoints_thread_id_idx, checkpoint_blobs_thread_id_idx, checkpoint_writes_thread_id_idx
"""
"""LangGraph's: the primary key of each of its tables begins with the thread, too."""

OURS: Final = (
    _REPLIES,
    _ACCEPTANCE,
    _LEASES,
    _FENCE,
    _EFFECTS,
    _SEAL,
    _OUTPUTS,
    _ITEMS,
    _WORDS,
    _EVENTS,
    _EVENTS_OF,
    _ENDS,
    _NO_SECOND_INDEXES,
)
"""In the order that it is made in."""

FORMAT: Final = 9
"""Counts changes of what is stored: a database of another format is refused, and left as it is."""

OF_A_THREAD: Final = ("daruma_replies", "daruma_effects", "daruma_outputs")
"""The tables whose rows belong to a thread, by ``thread_id``, and are deleted with it.

The lease is not among them: its token must not begin anew.
"""

GOING_WITH_A_THREAD: Final = ("daruma_events",)
"""Deleted with it too; a copy has none of them: nobody has told it anything."""


# --- Makes the checkpointer's tables, whoever else is making them at the same moment.


class _Tables(AsyncPostgresSaver):
    """The stock tables, with indexes made in the transaction that makes all the rest.

    Made ``CONCURRENTLY``, they would wait for every process that waits for the lock below.
    """

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        super().__init__(connection)
        self.MIGRATIONS = [each.replace("CONCURRENTLY", "") for each in self.MIGRATIONS]


_VERSION_OF = """
CREATE TABLE IF NOT EXISTS daruma_version (v integer PRIMARY KEY)
"""
_REFUSED = (
    "the database holds what another version of Daruma stored, which this one does not read "
    f"(its format is {FORMAT}): set DARUMA_POSTGRES_URL to an empty database, or remove the old "
    "one if nothing in it is needed (the embedded server's folder is in `daruma doctor`)"
)
_OTHER = "SELECT v FROM daruma_version WHERE v <> %s"
_MADE = """
SELECT FROM checkpoint_migrations, daruma_version
WHERE checkpoint_migrations.v >= %s AND daruma_version.v = %s
"""


async def make_tables(connection: AsyncConnection[Any]) -> None:
    """Make the tables in one transaction, one process after the other.

    The connection is in autocommit mode. A role that may not create tables is welcome when there is
    nothing to do. Raises :class:`~daruma.state.errors.OtherFormat`, and has then changed nothing.
    """
    if await _are_made(connection):
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.tables'))")
        await _Tables(connection).setup()
        for made in (*OURS, _VERSION_OF):
            await connection.execute(made)
        known = "INSERT INTO daruma_version VALUES (%s) ON CONFLICT DO NOTHING"
        await connection.execute(known, [FORMAT])


async def _are_made(connection: AsyncConnection[Any]) -> bool:
    newest = len(_Tables.MIGRATIONS) - 1
    try:
        if (await connection.execute(_OTHER, [FORMAT])).rowcount:
            raise OtherFormat(_REFUSED)
        found = await connection.execute(_MADE, [newest, FORMAT])
    except UndefinedTable:
        return False
    return found.rowcount > 0
