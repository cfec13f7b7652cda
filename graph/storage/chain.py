"""Whether nothing is missing in the history that a delta channel's value is replayed from.

The engine walks from a checkpoint through its ancestors up to one that holds a snapshot, or to the
first, and takes what there is of it: an ancestor or a write that is lost, it does not notice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daruma.graph.storage.damage import LostAncestor
from daruma.graph.storage.manifest import sound
from daruma.graph.storage.sealing import Sealing

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
