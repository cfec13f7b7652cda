"""A scripted task in Postgres, and ways in which its newest checkpoint can be damaged."""
# ruff: noqa: S608 - statements are made of constants

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from psycopg.rows import dict_row
from tests.crash.scenes import NEVER, graph_over, reply_to

from daruma.graph.storage import Postgres

Connection = psycopg.Connection[dict[str, Any]]

TABLES = ("daruma_checkpoints", "daruma_blobs", "daruma_writes")
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
KEY = bytes(range(32))

NEWEST = "checkpoint_id = (SELECT max(checkpoint_id) FROM daruma_checkpoints)"
PARENT = f"checkpoint_id = (SELECT parent_checkpoint_id FROM daruma_checkpoints WHERE {NEWEST})"
OWN_BLOB = (
    "(channel, version) IN (SELECT key, value FROM daruma_checkpoints, "
    f"jsonb_each_text(checkpoint -> 'channel_versions') WHERE {NEWEST}) AND (channel, version) "
    "NOT IN (SELECT key, value FROM daruma_checkpoints, "
    f"jsonb_each_text(checkpoint -> 'channel_versions') WHERE {PARENT})"
)
BLOB = f"UPDATE daruma_blobs SET {{}} WHERE {OWN_BLOB}"
ROW = f"UPDATE daruma_checkpoints SET {{}} WHERE {NEWEST}"
WRITE = (
    "INSERT INTO daruma_writes (thread_id, checkpoint_id, task_id, slot, channels, type, blob) "
    "SELECT 't', max(checkpoint_id), 'x', 0, '{{plan}}', {} FROM daruma_checkpoints"
)
FLIPPED = "blob = set_byte(blob, length(blob) / 2, 255 - get_byte(blob, length(blob) / 2))"

DAMAGES = {
    "a lost value": f"DELETE FROM daruma_blobs WHERE {OWN_BLOB}",
    "a value without its bytes": BLOB.format("blob = NULL"),
    "a value that is cut off": BLOB.format("blob = substr(blob, 1, length(blob) - 1)"),
    "a value of nothing": BLOB.format("blob = ''"),
    "a flipped byte": BLOB.format(FLIPPED),
    "a kind that is never read": BLOB.format("type = 'pickle'"),
    "a value called empty": BLOB.format("type = 'empty'"),
    "a row of another form": ROW.format("checkpoint = '[]'"),
    "a row of nothing": ROW.format("checkpoint = '{}'"),
    "a row without versions": ROW.format("checkpoint = checkpoint - 'channel_versions'"),
    "a row with a list of versions": ROW.format(
        "checkpoint = jsonb_set(checkpoint, '{channel_versions}', '[]')"
    ),
    "a row that lost one channel": ROW.format(
        "checkpoint = checkpoint #- '{channel_versions,task}'"
    ),
    "a row without what was seen": ROW.format("checkpoint = checkpoint - 'versions_seen'"),
    "a row with another's id": ROW.format("checkpoint = jsonb_set(checkpoint, '{id}', '\"x\"')"),
    "a row with no time": ROW.format("checkpoint = jsonb_set(checkpoint, '{ts}', '\"x\"')"),
    "a row with another value": ROW.format(
        "checkpoint = jsonb_set(checkpoint, '{channel_values,failure}', 'true')"
    ),
    "a broken manifest": ROW.format("checkpoint = jsonb_set(checkpoint, '{daruma}', '{}')"),
    "metadata of another form": ROW.format("metadata = '[]'"),
    "metadata of another step": ROW.format("metadata = jsonb_set(metadata, '{step}', '99')"),
    "a write that is no msgpack": WRITE.format("'msgpack', 'x'"),
    "a write of a kind never read": WRITE.format("'pickle', 'x'"),
    "all writes of the parent": f"DELETE FROM daruma_writes WHERE {PARENT}",
    "one write of the parent": "DELETE FROM daruma_writes WHERE 'steps' = ANY(channels) AND "
    + PARENT,
    "a lost parent": f"DELETE FROM daruma_checkpoints WHERE {PARENT}",
}
"""Statements, each of which damages the newest checkpoint, and at most a few before it."""


def finished(pg: Postgres, folder: Path, scene: str = "paid") -> Any:
    """Run a scene to its end on the thread ``t``, and return its last state."""
    folder.mkdir()
    (folder / "data.txt").write_text("a")
    request = {"messages": [("user", "Mend it")], "mode": "plan_exec", "workspace": str(folder)}
    return at_the_end(graph_over(pg, scene, folder, NEVER), request, THREAD)


def at_the_end(graph: Any, given: Any, config: RunnableConfig) -> Any:
    """Go on with a thread, saying yes to all that it asks, and return its last state."""
    graph.invoke(given, config)
    while questions := graph.get_state(THREAD).interrupts:
        replies = {each.id: reply_to(each.value, Path(each.value["id"])) for each in questions}
        graph.invoke(Command(resume=replies), THREAD)
    return graph.get_state(THREAD)


def essence(state: Any) -> Any:
    """What a run that was damaged and taken up again has to end with."""
    result = state.values["result"]
    said = [(each.type, each.text) for each in state.values["messages"]]
    return result.status, result.budgets, [phase.status for phase in result.phases], said


def killed_before(url: str, graph: Any, node: str, *, after: bool = False) -> None:
    """Forget all that a thread did from the last time on that it was about to enter a node.

    ``after`` keeps what the node itself wrote.
    """
    point = next(past for past in graph.get_state_history(THREAD) if past.next == (node,))
    newest = point.config["configurable"]["checkpoint_id"]
    with psycopg.connect(url) as connection:
        kept = newest if after else ""
        gone = "DELETE FROM daruma_writes WHERE checkpoint_id >= %s AND checkpoint_id <> %s"
        connection.execute(gone, [newest, kept])
        connection.execute("DELETE FROM daruma_checkpoints WHERE checkpoint_id > %s", [newest])


def deleted_one_by_one(connection: Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Delete each row in turn, and put it back."""
    for table in TABLES:
        for place in connection.execute(f"SELECT ctid FROM {table}").fetchall():
            gone = f"DELETE FROM {table} WHERE ctid = %(ctid)s RETURNING *"
            yield table, connection.execute(gone, place).fetchone() or {}
            connection.execute(f"INSERT INTO {table} TABLE kept_{table} ON CONFLICT DO NOTHING")


@contextmanager
def restored(url: str) -> Iterator[Connection]:
    """Yield a connection that does damage, and undo all of it."""
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE kept_{table} AS TABLE {table}")
        try:
            yield connection
        finally:
            for table in TABLES:
                connection.execute(f"TRUNCATE {table}")
                connection.execute(f"INSERT INTO {table} TABLE kept_{table}")
                connection.execute(f"DROP TABLE kept_{table}")
