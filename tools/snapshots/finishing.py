"""Bringing a restore that is on record to its end, and saying honestly what came of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.applying import MEANWHILE, Applying
from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.difference import differences
from daruma.tools.snapshots.durable import sync_file_system
from daruma.tools.snapshots.ignored import decoded
from daruma.tools.snapshots.intent import Intent, close_intent, write_intent
from daruma.tools.snapshots.looking import Look, alone
from daruma.tools.snapshots.mixing import mixed
from daruma.tools.snapshots.outcome import By, Restored, Snapshot
from daruma.tools.snapshots.path_text import told
from daruma.tools.snapshots.placing import Placing
from daruma.tools.snapshots.recorded import Recorded
from daruma.tools.snapshots.walk import TEMPORARY

if TYPE_CHECKING:
    from daruma.tools.snapshots.snapshots import Snapshots


@dataclass
class Finishing:
    """Carries out what an intent says, in a workspace and a store that are open."""

    snapshots: "Snapshots"
    contents: Contents
    top: int
    intent: Intent
    way: type[Applying] = Applying

    def begin(self) -> None:
        """Put the intent on record, with all that was kept before it, before anything changes."""
        self.snapshots.step()
        write_intent(self.contents.database, self.snapshots.place(), self.intent)
        self.contents.commit()
        self.snapshots.step()

    def finish(self) -> Restored:
        """Go the rest of the way, look at the workspace again, and close the intent."""
        recorded = Recorded(self.contents, self.snapshots.place(), self.intent.thread)
        before = recorded.named(self.intent.before)
        left = self._applied(before)
        rules = decoded(self.contents.blob(before.rules))
        root, unkept = self.snapshots.seen(self.contents, self.top, rules)
        wrong, foreign = self._compared(before, root)
        after = self._record(recorded, before, root, frozenset(foreign), tuple(unkept))
        close_intent(self.contents.database, self.snapshots.place())
        self.snapshots.step()
        self.contents.commit()
        self.snapshots.step()
        return report(self.intent, after, {path: left.get(path, MEANWHILE) for path in wrong})

    def _applied(self, before: Snapshot) -> dict[Parts, str]:
        rules = decoded(self.contents.blob(before.rules))
        was = Look(self.contents.tree, before.root)
        placing = Placing(TEMPORARY + self.intent.id, self.snapshots.step)
        way = self.way(self.top, rules, self.intent.goal, was, self.contents.blob, placing)
        way.run()
        sync_file_system(self.top)
        self.snapshots.step()
        return way.left

    def _compared(self, before: Snapshot, root: str) -> tuple[set[Parts], set[Parts]]:
        """Return the paths that are not as they should be, and those that are somebody else's."""
        was, now = Look(self.contents.tree, before.root), Look(self.contents.tree, root)
        goal = self.intent.goal
        found = differences(self.contents.tree, before.root, root)
        differing = {path: alone(entry) for path, _, entry in found}
        foreign = {path for path in differing if now(path) not in (was(path), goal.get(path, 0))}
        wrong = {path for path, entry in goal.items() if now(path) != entry}
        return wrong | foreign, foreign

    def _record(
        self,
        recorded: Recorded,
        before: Snapshot,
        root: str,
        foreign: frozenset[Parts],
        unkept: tuple[str, ...],
    ) -> Snapshot:
        """Record what this restore has made as its own, and what somebody else has as theirs."""
        ours = mixed(self.contents, root, before.root, foreign)
        after = self._add(recorded, before, ours, unkept, self.intent.by)
        if ours != root:
            self._add(recorded, before, root, unkept, "others")
        return after

    def _add(
        self, recorded: Recorded, before: Snapshot, root: str, unkept: tuple[str, ...], by: By
    ) -> Snapshot:
        label, at = self.intent.label, self.snapshots.now()
        return recorded.add(label, by, root=root, rules=before.rules, at=at, unkept=unkept)


def report(intent: Intent, after: Snapshot, wrong: dict[Parts, str]) -> Restored:
    """Say what was put back and what was not."""
    left = intent.left | wrong
    return Restored(
        snapshot=intent.target or after.id,
        before=intent.before,
        paths=tuple(sorted(told(path) for path in intent.goal.keys() - wrong.keys())),
        exact=not left,
        left=tuple(sorted(f"{told(path)}: {reason}" for path, reason in left.items())),
        kept=tuple(sorted(map(told, intent.kept))),
    )
