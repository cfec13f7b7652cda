"""What a run stores: a checkpoint with what its parent's tasks wrote, in one statement.

One statement is one transaction and one journey to the server. The parts of a statement do not see
what the others of it do: so a checkpoint counts what is there and what is put there with it.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from daruma.graph.storage.fence import FENCE
from daruma.graph.storage.json_text import jsonb
from daruma.graph.storage.manifest import NAME

WriteRow = tuple[Any, ...]
"""Thread, namespace, checkpoint, task, path, number, channel, kind and value of a write."""

BlobRow = tuple[Any, ...]
"""Thread, namespace, channel, version, kind and value of a channel."""


_INSERT_WRITES: Final = """
INSERT INTO checkpoint_writes (
    thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
)
SELECT row ->> 0, row ->> 1, row ->> 2, row ->> 3, row ->> 4, (row ->> 5)::int, row ->> 6,
    row ->> 7, substr(%(written_bytes)b, (row ->> 8)::int, (row ->> 9)::int)
FROM fence, jsonb_array_elements(%(written)s) AS row
"""
_ON_THE_SAME_WRITE: Final = "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO"
_INSERT_BLOBS: Final = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT row ->> 0, row ->> 1, row ->> 2, row ->> 3, row ->> 4,
    substr(%(valued_bytes)b, (row ->> 5)::int, (row ->> 6)::int)
FROM fence, jsonb_array_elements(%(valued)s) AS row
"""


def _saving(write: str = "", value: str = "", checkpoint: str = "") -> str:
    """Return LangGraph's three statements as one, with what each does where the row is there."""
    return f"""
WITH {FENCE}, written AS (
    {_INSERT_WRITES} {write} RETURNING checkpoint_ns, checkpoint_id, channel
), valued AS ({_INSERT_BLOBS} {value}), counted AS (
    SELECT channel, count(*) AS n FROM (
        SELECT channel FROM checkpoint_writes
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(parent)s
        UNION ALL
        SELECT channel FROM written
        WHERE checkpoint_ns = %(ns)s AND checkpoint_id = %(parent)s
    ) AS there
    WHERE %(checkpoint)s #> '{{{NAME},writes}}' ? channel GROUP BY channel
)
INSERT INTO checkpoints (
    thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata
)
SELECT %(thread)s::text, %(ns)s::text, %(id)s::text, %(parent)s::text, jsonb_set(
    %(checkpoint)s, '{{{NAME},writes}}',
    coalesce((SELECT jsonb_object_agg(channel, n) FROM counted), '{{}}')
), %(metadata)s
FROM fence
{checkpoint}
"""  # noqa: S608 - of constants alone


SAVE: Final = _saving()
"""The checkpoint also counts its parent's writes. Fails where one of the rows is there already.

That is so after a lost answer, and seldom else: to be ready for it, Postgres would confirm each row
once more in its log.
"""

SAVE_AGAIN: Final = _saving(
    f"{_ON_THE_SAME_WRITE} NOTHING",
    "ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING",
    "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) "
    "DO UPDATE SET checkpoint = excluded.checkpoint, metadata = excluded.metadata",
)
"""The same where they may be there: what is there stays, but for the checkpoint's own row."""

WRITE: Final = f"""
WITH {FENCE} {_INSERT_WRITES} {_ON_THE_SAME_WRITE} NOTHING
"""
WRITE_OVER: Final = f"""
WITH {FENCE} {_INSERT_WRITES} {_ON_THE_SAME_WRITE}
UPDATE SET channel = excluded.channel, type = excluded.type, blob = excluded.blob
"""
"""For the special channels, each of which has one slot."""


class Saved(NamedTuple):
    """A checkpoint as it is stored."""

    thread: str
    ns: str
    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: Any
    blobs: Sequence[BlobRow]
    again: bool = False
    """Whether a value among them may have been stored with a checkpoint before."""

    def values(self, writes: Sequence[WriteRow]) -> dict[str, Any]:
        """Return what SAVE takes, but for the fence's."""
        return {
            "thread": self.thread,
            "ns": self.ns,
            "id": self.id,
            "parent": self.parent,
            "checkpoint": jsonb(self.checkpoint),
            "metadata": jsonb(self.metadata),
            **_rows("valued", self.blobs),
            **values_of(writes),
        }


def values_of(writes: Sequence[WriteRow]) -> dict[str, Any]:
    """Return what WRITE and WRITE_OVER take, but for the fence's."""
    return _rows("written", writes)


def _rows(name: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return rows as JSON, each with where its last column, bytes, stands among those of all.

    Arrays, one for each column, take psycopg as long as all the rest of saving.
    """
    ends = [*accumulate((len(row[-1]) for row in rows), initial=1)]
    told = [[*row[:-1], at, len(row[-1])] for row, at in zip(rows, ends, strict=False)]
    return {name: jsonb(told), f"{name}_bytes": b"".join(row[-1] for row in rows)}
