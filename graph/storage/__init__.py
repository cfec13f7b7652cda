"""Storage in Postgres: checkpoints, the store, the journal of effects, leases, and events of runs.

``open_postgres`` opens the database that is given, the environment's, or the embedded one.
Everything else goes through that: savers and stores that notice losses, leases that fence a
thread's only writer, and the upkeep of old threads. What a graph without a database uses in their
place lies beside them.
"""

from typing import TYPE_CHECKING

from daruma._doors import open_late

if TYPE_CHECKING:
    from daruma.graph.storage._database import (
        Connection,
        Database,
        Pool,
        error_line,
        explain_saver_errors,
    )
    from daruma.graph.storage._embedded import Server
    from daruma.graph.storage._events import EVENTS_AT_ONCE, EventLog, StoredEvent, is_said
    from daruma.graph.storage._journal import (
        REVIEWED,
        OpenQuestion,
        claim_questions,
        read_inbox,
        settle_question,
    )
    from daruma.graph.storage._leases import ProcessLife
    from daruma.graph.storage._ledgers import (
        Hold,
        Leases,
        Ledger,
        athread_held,
        is_held_here,
        journal_of,
        ledger_of,
        strict_saver,
        thread_held,
        workspace_files_id,
        workspace_of,
    )
    from daruma.graph.storage._postgres import Postgres, aopen_postgres, open_postgres
    from daruma.graph.storage._pruning import PRUNABLE, OldThread, Pruned, note_of
    from daruma.graph.storage._rows import open_writes
    from daruma.graph.storage._saver import PostgresSaver, channel_values
    from daruma.graph.storage._store import PostgresStore
else:
    __getattr__ = open_late(
        __name__,
        {
            "_database": "Connection Database error_line explain_saver_errors Pool",
            "_embedded": "Server",
            "_events": "EVENTS_AT_ONCE EventLog StoredEvent is_said",
            "_journal": "OpenQuestion REVIEWED claim_questions read_inbox settle_question",
            "_leases": "ProcessLife",
            "_ledgers": (
                "Hold Leases Ledger athread_held is_held_here journal_of ledger_of strict_saver "
                "thread_held workspace_files_id workspace_of"
            ),
            "_postgres": "Postgres aopen_postgres open_postgres",
            "_pruning": "OldThread PRUNABLE Pruned note_of",
            "_rows": "open_writes",
            "_saver": "channel_values PostgresSaver",
            "_store": "PostgresStore",
        },
    )

__all__ = [
    "EVENTS_AT_ONCE",
    "PRUNABLE",
    "REVIEWED",
    "Connection",
    "Database",
    "EventLog",
    "Hold",
    "Leases",
    "Ledger",
    "OldThread",
    "OpenQuestion",
    "Pool",
    "Postgres",
    "PostgresSaver",
    "PostgresStore",
    "ProcessLife",
    "Pruned",
    "Server",
    "StoredEvent",
    "aopen_postgres",
    "athread_held",
    "channel_values",
    "claim_questions",
    "error_line",
    "explain_saver_errors",
    "is_held_here",
    "is_said",
    "journal_of",
    "ledger_of",
    "note_of",
    "open_postgres",
    "open_writes",
    "read_inbox",
    "settle_question",
    "strict_saver",
    "thread_held",
    "workspace_files_id",
    "workspace_of",
]
