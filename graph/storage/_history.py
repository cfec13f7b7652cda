"""The history that delta channels are replayed from, and whether it is whole (DU-08)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langgraph.checkpoint.postgres.base import _build_delta_stage2_sql
from psycopg import AsyncCursor
from psycopg.rows import DictRow

from daruma.graph.storage._manifest import NAME, LostAncestor, sound
from daruma.graph.storage._rows import blob_place, open_write
from daruma.graph.storage._sealing import Sealing, check_typed_value

# --- Whether nothing is missing in the history that a delta channel's value is replayed from.
#
# The engine walks from a checkpoint through its ancestors up to one that holds a snapshot, or to
# the first, and takes what there is of it: an ancestor or a write that is lost, it does not notice.

Notes = Mapping[str, Mapping[str, Any]]


@dataclass
class Walk:
    """What was found for some channels of one checkpoint, the ancestors newest first.

    ``open`` holds, for a channel without a snapshot, the ancestor at which its walk broke off.
    """

    thread: str
    namespace: str
    target: str = ""
    chains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    open: Mapping[str, str | None] = field(default_factory=dict)
    snapshots: frozenset[tuple[str, str]] = frozenset()
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def checkpoints(self) -> list[str]:
        """All that were walked through."""
        return list(
            {self.target: 0} | {each: 0 for chain in self.chains.values() for each in chain}
        )


def refuse_gaps(walk: Walk, notes: Notes, sealing: Sealing) -> None:
    """Raise :class:`LostAncestor` where a checkpoint noted what is not there any more."""
    for channel, chain in walk.chains.items():
        lost = walk.open.get(channel)
        if lost:
            raise LostAncestor(f"its ancestor {lost} is lost", lost)
        _refuse_lost_snapshot(walk, channel, notes)
        for child, parent in zip([walk.target, *chain], [*chain, None], strict=True):
            ends = parent is None and channel not in walk.open
            manifest = sound(notes.get(child, {}).get("manifest"), sealing)
            if manifest and not ends:
                _refuse_lost_writes(walk, channel, manifest, parent)


def _refuse_lost_writes(
    walk: Walk, channel: str, manifest: Mapping[str, Any], parent: str | None
) -> None:
    if manifest["parent"] != parent:
        since = manifest["parent"] or ""
        raise LostAncestor(f"its ancestor {since or 'of old'} is lost", since)
    lost = manifest["writes"].get(channel, 0) - walk.writes[channel, parent or ""]
    if lost > 0 and parent:
        raise LostAncestor(f"{lost} of the writes to {channel!r} at {parent} are lost", parent)


def _refuse_lost_snapshot(walk: Walk, channel: str, notes: Notes) -> None:
    for each in walk.chains[channel]:
        manifest = notes.get(each, {}).get("manifest") or {}
        wanted: Iterable[str] = manifest.get("blobs", ())
        if channel in wanted and (channel, each) not in walk.snapshots:
            raise LostAncestor(f"the snapshot of {channel!r} at {each} is lost", each)


# --- The history that delta channels are replayed from: a chain of ancestors, and what these hold.
#
# LangGraph's own saver reads pages of 1,024 checkpoints and looks for a whole copy of each channel
# at each of them. Here the database goes from a checkpoint to the one before it, and only as far as
# some channel still lacks its copy; what each checkpoint notes of itself comes along.

_CHAIN: Final = f"""
WITH RECURSIVE chain AS (
    SELECT checkpoint_id AS id, parent_checkpoint_id AS parent, checkpoint -> '{NAME}' AS manifest,
        NULL::jsonb AS held, NULL::jsonb AS inline, %(channels)s::text[] AS lacking
    FROM checkpoints
    WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(target)s
UNION ALL
    SELECT made.checkpoint_id, made.parent_checkpoint_id, told.{NAME},
        found.held, found.inline, found.lacking
    FROM chain
    CROSS JOIN LATERAL (
        SELECT checkpoint_id, parent_checkpoint_id, checkpoint FROM checkpoints
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
            SELECT version FROM checkpoint_blobs
            WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s
            AND channel = each.channel AND type <> 'empty'
            AND version = told.channel_versions ->> each.channel
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

Place = tuple[str, str, str]
"""A thread, a namespace in it, and a checkpoint there."""


@dataclass(frozen=True)
class Traced:
    """What was found for some channels of a checkpoint; ``contents`` are copies and writes."""

    place: Place
    chains: Mapping[str, Sequence[str]]
    open: Mapping[str, str | None]
    notes: Notes
    versions: Mapping[str, str]
    inline: Mapping[str, Any]
    contents: Sequence[DictRow]

    @property
    def seeds(self) -> dict[str, str | None]:
        """The version of each channel's copy; anything where it stands in the row."""
        return {**dict.fromkeys(self.inline, "inline"), **self.versions}

    @property
    def size(self) -> int:
        """Bytes of all that is to be unpacked."""
        return sum(len(row["blob"] or b"") for row in self.contents)

    def walk(self, opened: Sequence[Mapping[str, Any]]) -> Walk:
        """Return what was walked through, for the check that nothing is missing in it."""
        thread, namespace, target = self.place
        return Walk(
            thread,
            namespace,
            target if self.notes else "",
            self.chains,
            self.open,
            frozenset(
                (row["channel"], self.chains[row["channel"]][-1])
                for row in opened
                if row["_kind"] == "b"
            ),
            Counter(
                (row["channel"], row["checkpoint_id"]) for row in opened if row["_kind"] == "w"
            ),
        )

    def opened(self, sealing: Sealing) -> list[dict[str, Any]]:
        """Unwrap the contents. Raises :class:`~daruma.state.errors.DamagedState`."""
        return [self._opened(row, sealing) for row in self.contents]

    def _opened(self, row: DictRow, sealing: Sealing) -> dict[str, Any]:
        thread, namespace, _ = self.place
        value = check_typed_value(row["type"], row["blob"])
        if row["_kind"] == "b":
            at = blob_place(thread, namespace, row["channel"], row["version"])
            kind, payload = sealing.open(value, at)
        else:
            names = ("checkpoint_id", "task_id", "task_path", "idx", "channel")
            written = [thread, namespace, *(str(row[name]) for name in names)]
            kind, payload, _ = open_write(value, written, sealing)
        return {**row, "type": kind, "blob": payload}


async def trace(cursor: AsyncCursor[DictRow], place: Place, channels: Sequence[str]) -> Traced:
    """Read what channels of a checkpoint are replayed from, in two queries."""
    thread, namespace, target = place
    given = {"thread": thread, "ns": namespace, "target": target, "channels": [*channels]}
    await cursor.execute(_CHAIN, given)
    notes = {row["id"]: row for row in await cursor.fetchall()}
    walked = {channel: _walked(notes, target, channel) for channel in channels}
    chains = {channel: chain for channel, (chain, _) in walked.items()}
    copies = {channel: notes[at[-1]] for channel, at in chains.items() if at}
    versions = {
        each: copy["held"][each] for each, copy in copies.items() if each in (copy["held"] or ())
    }
    inline = {
        each: copy["inline"][each]
        for each, copy in copies.items()
        if each in (copy["inline"] or ())
    }
    await _contents(cursor, place, chains, versions)
    contents = await cursor.fetchall() if copies else []
    still_open = {
        channel: at
        for channel, (_, at) in walked.items()
        if channel not in versions and channel not in inline
    }
    return Traced(place, chains, still_open, notes, versions, inline, contents)


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


async def _contents(
    cursor: AsyncCursor[DictRow],
    place: Place,
    chains: Mapping[str, Sequence[str]],
    versions: Mapping[str, str],
) -> None:
    long = [channel for channel, chain in chains.items() if chain]
    if not long:
        return
    thread, namespace, _ = place
    sql = _build_delta_stage2_sql(channels_with_chain=long, channels_with_seed=[*versions])
    writes = [each for name in long for each in (thread, namespace, name, [*chains[name]])]
    copies = [each for item in versions.items() for each in (thread, namespace, *item)]
    await cursor.execute(sql.encode(), [*writes, *copies])
