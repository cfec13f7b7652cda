"""The history that delta channels are replayed from, and whether it is whole (DU-08)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langgraph.checkpoint.base import DeltaChannelHistory, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncCursor
from psycopg.rows import DictRow

from daruma.graph.storage._rows import NAME, LostAncestor, open_writes, sound
from daruma.graph.storage._sealing import Sealing, check_typed_value

# --- Whether nothing is missing in the history that a delta channel's value is replayed from.
#
# The engine takes what there is of it: an ancestor or a write that is lost, it does not notice.

Notes = Mapping[str, Mapping[str, Any]]


@dataclass
class Walk:
    """What was found for some channels of one checkpoint, the ancestors newest first.

    ``open`` holds, for a channel without a snapshot, the ancestor at which its walk broke off.
    """

    target: str = ""
    chains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    open: Mapping[str, str | None] = field(default_factory=dict)
    snapshots: frozenset[tuple[str, str]] = frozenset()
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)


def refuse_gaps(walk: Walk, notes: Notes) -> None:
    """Raise :class:`LostAncestor` where a checkpoint noted what is not there any more."""
    for channel, chain in walk.chains.items():
        lost = walk.open.get(channel)
        if lost:
            raise LostAncestor(f"its ancestor {lost} is lost", lost)
        for each in chain:
            manifest = notes.get(each, {}).get("manifest") or {}
            if channel in manifest.get("blobs", ()) and (channel, each) not in walk.snapshots:
                raise LostAncestor(f"the snapshot of {channel!r} at {each} is lost", each)
        for child, parent in zip([walk.target, *chain], [*chain, None], strict=True):
            if child not in notes or (parent is None and channel not in walk.open):
                continue
            manifest = sound(notes[child]["manifest"])
            if manifest["parent"] != parent:
                since = manifest["parent"] or ""
                raise LostAncestor(f"its ancestor {since or 'of old'} is lost", since)
            gone = manifest["writes"].get(channel, 0) - walk.writes[channel, parent or ""]
            if gone > 0 and parent:
                raise LostAncestor(
                    f"{gone} of the writes to {channel!r} at {parent} are lost", parent
                )


# --- The history that delta channels are replayed from: a chain of ancestors, and what these hold.
#
# LangGraph's own saver reads pages of 1,024 checkpoints and looks for a whole copy of each channel
# at each of them. Here the database goes from a checkpoint to the one before it, and only as far as
# some channel still lacks its copy; what each checkpoint notes of itself comes along.

CHAIN: Final = f"""
WITH RECURSIVE chain AS (
    SELECT checkpoint_id AS id, parent_checkpoint_id AS parent, checkpoint -> '{NAME}' AS manifest,
        NULL::jsonb AS held, NULL::jsonb AS inline, %(channels)s::text[] AS lacking
    FROM daruma_checkpoints
    WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(target)s
UNION ALL
    SELECT made.checkpoint_id, made.parent_checkpoint_id, told.{NAME},
        found.held, found.inline, found.lacking
    FROM chain
    CROSS JOIN LATERAL (
        SELECT checkpoint_id, parent_checkpoint_id, checkpoint FROM daruma_checkpoints
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = chain.parent
        LIMIT 1
    ) AS made
    CROSS JOIN LATERAL jsonb_to_record(
        CASE jsonb_typeof(made.checkpoint) WHEN 'object' THEN made.checkpoint ELSE '{{}}' END
    ) AS told ({NAME} jsonb, channel_versions jsonb, channel_values jsonb)
    CROSS JOIN LATERAL (
        SELECT
            jsonb_object_agg(each.channel, kept.version)
                FILTER (WHERE kept.version IS NOT NULL) AS held,
            jsonb_object_agg(each.channel, told.channel_values -> each.channel) FILTER (
                WHERE kept.version IS NULL AND told.channel_values ->> each.channel IS NOT NULL
            ) AS inline,
            array_agg(each.channel) FILTER (
                WHERE kept.version IS NULL AND told.channel_values ->> each.channel IS NULL
            ) AS lacking
        FROM unnest(chain.lacking) AS each (channel)
        LEFT JOIN LATERAL (
            SELECT version FROM daruma_blobs
            WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s
            AND channel = each.channel AND version = told.channel_versions ->> each.channel
            LIMIT 1
        ) AS kept ON true
    ) AS found
    WHERE chain.lacking IS NOT NULL AND chain.parent < chain.id
)
SELECT * FROM chain
"""  # noqa: S608 - of constants alone
"""``held`` are the versions of whole copies, ``inline`` what stands in the row in place of one.

Each ``LIMIT`` says that a key finds one row: Postgres, before it has counted a new table, would
go through the whole thread at each of its checkpoints.
"""
_WRITES: Final = """
SELECT checkpoint_ns, checkpoint_id, task_id, task_path, slot, channels, type, blob
FROM daruma_writes AS own
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = ANY(%(ids)s)
AND EXISTS (
    SELECT FROM unnest(%(channels)s::text[], %(oldest)s::text[]) AS wanted (channel, oldest)
    WHERE wanted.channel = ANY(own.channels) AND own.checkpoint_id >= wanted.oldest
)
"""
_COPIES: Final = """
SELECT channel, version, type, blob FROM daruma_blobs
JOIN unnest(%(channels)s::text[], %(versions)s::text[]) AS held (channel, version)
USING (channel, version) WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s
"""

Target = tuple[str, str, str]
"""A thread, a namespace in it, and a checkpoint there."""


@dataclass(frozen=True)
class History:
    """What was found for some channels of a checkpoint, as it is stored."""

    target: Target
    chains: Mapping[str, Sequence[str]]
    open: Mapping[str, str | None]
    notes: Notes
    versions: Mapping[str, str]
    inline: Mapping[str, Any]
    writes: Sequence[DictRow]
    copies: Sequence[DictRow]

    @property
    def size(self) -> int:
        """Bytes of all that is to be unpacked."""
        return sum(len(row["blob"] or b"") for row in (*self.writes, *self.copies))

    def replayed(
        self, serde: SerializerProtocol, sealing: Sealing
    ) -> dict[str, DeltaChannelHistory]:
        """Return what each channel's value is made of, the oldest write first.

        Raises :class:`~daruma.state.errors.DamagedState`.
        """
        thread, namespace, target = self.target
        seeds = dict(self.inline)
        for row in self.copies:
            at = thread, namespace, row["channel"], row["version"]
            value = sealing.open(check_typed_value(row["type"], row["blob"]), at)
            seeds[row["channel"]] = serde.loads_typed(value)
        found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in sorted(
            self.writes,
            key=lambda row: writes_sort_key(row["task_path"], row["task_id"], row["slot"]),
        ):
            for each in open_writes(thread, row, sealing)[1]:
                if each.channel in self.chains:
                    found[each.channel, row["checkpoint_id"]].append((row["task_id"], each))
        snapshots = frozenset(
            (row["channel"], self.chains[row["channel"]][-1]) for row in self.copies
        )
        counted = Counter({place: len(writes) for place, writes in found.items()})
        refuse_gaps(Walk(target, self.chains, self.open, snapshots, counted), self.notes)
        made: dict[str, DeltaChannelHistory] = {}
        for channel, chain in self.chains.items():
            made[channel] = {
                "writes": [
                    (task, channel, serde.loads_typed((each.kind, each.payload)))
                    for checkpoint in reversed(chain)
                    for task, each in found[channel, checkpoint]
                ]
            }
            if channel in seeds:
                made[channel]["seed"] = seeds[channel]
        return made


async def read_history(
    cursor: AsyncCursor[DictRow], target: Target, channels: Sequence[str]
) -> History:
    """Read what channels of a checkpoint are replayed from, in three queries at most."""
    thread, namespace, checkpoint = target
    named: dict[str, Any] = {"thread": thread, "ns": namespace}
    await cursor.execute(CHAIN, {**named, "target": checkpoint, "channels": [*channels]})
    notes = {row["id"]: row for row in await cursor.fetchall()}
    walked = {channel: _walked(notes, checkpoint, channel) for channel in channels}
    chains = {channel: chain for channel, (chain, _) in walked.items()}
    versions, inline = (
        {
            channel: notes[chain[-1]][kind][channel]
            for channel, chain in chains.items()
            if chain and channel in (notes[chain[-1]][kind] or ())
        }
        for kind in ("held", "inline")
    )
    still_open = {
        channel: at
        for channel, (_, at) in walked.items()
        if channel not in versions and channel not in inline
    }
    writes: Sequence[DictRow] = ()
    copies: Sequence[DictRow] = ()
    if long := {channel: chain for channel, chain in chains.items() if chain}:
        ids = list({each: 0 for chain in long.values() for each in chain})
        oldest = [chain[-1] for chain in long.values()]
        given = {**named, "ids": ids, "channels": [*long], "oldest": oldest}
        await cursor.execute(_WRITES, given)
        writes = await cursor.fetchall()
    if versions:
        given = {**named, "channels": [*versions], "versions": [*versions.values()]}
        await cursor.execute(_COPIES, given)
        copies = await cursor.fetchall()
    return History(target, chains, still_open, notes, versions, inline, writes, copies)


def _walked(notes: Notes, target: str, channel: str) -> tuple[list[str], str | None]:
    """Return a channel's chain, newest first, and the ancestor that was looked for in vain."""
    chain = list[str]()
    at: str | None = notes[target]["parent"] if target in notes else None
    while at is not None and at in notes:
        chain.append(at)
        if channel not in (notes[at]["lacking"] or ()):
            return chain, None
        at = notes[at]["parent"]
    return chain, at
