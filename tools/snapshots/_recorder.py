"""Reading a workspace that is open, and recording what it holds as a snapshot of one thread."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from daruma.tools.snapshots._ignore import frozen
from daruma.tools.snapshots._ignore_patterns import Rules, decoded
from daruma.tools.snapshots._outcome import ChangedBy, Snapshot, Taken, told_of
from daruma.tools.snapshots._placing import Applying, no_step
from daruma.tools.snapshots._records import Recorded, packing
from daruma.tools.snapshots._states import as_changes, between
from daruma.tools.snapshots._store import Contents, Store
from daruma.tools.snapshots._walk import Reader, Statuses, Walk


class Recorder:
    """Records what a workspace holds, in a store and a workspace that are open already."""

    def __init__(
        self,
        workspace: Path,
        thread: str,
        store: Store,
        *,
        exclude: Sequence[str] = (),
        now: Callable[[], float] = time.time,
        step: Callable[[], None] = no_step,
        way: type[Applying] = Applying,
    ) -> None:
        self.workspace = workspace
        self.thread = thread
        self.store = store
        self.exclude = tuple(exclude)
        self.now = now
        self.step = step
        self.way = way

    def taken(
        self,
        contents: Contents,
        top: int,
        label: str,
        *,
        by: ChangedBy,
        fresh: bool = False,
        opens: bool = False,
    ) -> Taken:
        """Do what `take` does in a store and a workspace that are open."""
        recorded = self.recorded(contents)
        last, base = recorded.last(), recorded.last(undone=False)
        interrupted = by == "others" and last is not None and last.opens
        by = "work" if interrupted else by
        rules = self.rules(contents, last, top, fresh=fresh)
        root, unkept = self.seen(contents, top, rules)
        digest = contents.put_blob(rules.encoded())
        snapshot = recorded.add(
            label, by, root=root, rules=digest, at=self.now(), unkept=tuple(unkept), opens=opens
        )
        if base is None or interrupted:
            return Taken(snapshot)
        return Taken(snapshot, as_changes(between(contents, base, snapshot)))

    def recorded(self, contents: Contents) -> Recorded:
        """Return the rows of this thread's snapshots in an open store."""
        return Recorded(contents, self.place(), self.thread)

    def place(self) -> bytes:
        """Return where the workspace really is."""
        return os.fsencode(os.path.realpath(self.workspace))

    def rules(
        self, contents: Contents, last: Snapshot | None, top: int, *, fresh: bool = False
    ) -> Rules:
        """Return the ignore rules of the thread's last snapshot, or those that hold now."""
        if last is None or fresh:
            return frozen(top, self.workspace, self.exclude)
        return decoded(contents.blob(last.rules))

    def seen(self, contents: Contents, top: int, rules: Rules) -> tuple[str, list[str]]:
        """Keep what an open workspace holds; return the root's id and what could not be kept."""
        statuses = Statuses(contents, self.place())
        with told_of(self.workspace), packing(contents) as packed:
            walk = Walk(top, rules, Reader(packed.put, statuses=statuses))
            root = walk.root(contents.put_tree)
        statuses.save()
        return root, walk.unkept
