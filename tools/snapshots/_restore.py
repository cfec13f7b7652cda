"""Putting a workspace back: looked at beforehand, on record, done, and told honestly."""

import itertools
import secrets
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from daruma.tools.files import Parts
from daruma.tools.snapshots._ignore_patterns import Rules, decoded
from daruma.tools.snapshots._outcome import (
    ChangedBy,
    Conflicts,
    Entry,
    Restored,
    RestoreRefused,
    Snapshot,
    SnapshotUnavailable,
    told,
)
from daruma.tools.snapshots._placing import MEANWHILE, Applying, Placing
from daruma.tools.snapshots._recorder import Recorder
from daruma.tools.snapshots._records import (
    Intent,
    Recorded,
    close_intent,
    open_intent,
    write_intent,
)
from daruma.tools.snapshots._restore_plan import Plan, beyond, changed, completed, planned
from daruma.tools.snapshots._states import Look, alone, between, differences, mixed
from daruma.tools.snapshots._store import Contents, sync_file_system
from daruma.tools.snapshots._walk import TEMPORARY

# --- Bringing a restore that is on record to its end, and saying honestly what came of it.


@dataclass
class Finishing:
    """Carries out what an intent says, in a workspace and a store that are open."""

    snapshots: Recorder
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
        self,
        recorded: Recorded,
        before: Snapshot,
        root: str,
        unkept: tuple[str, ...],
        by: ChangedBy,
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


# --- Deciding what is put back of a workspace, and having it put back.

_NAMED: Final = 10
"""Paths that the error of a refusal names; it carries all of them."""


@dataclass
class PuttingBack:
    """Puts back paths of a workspace that is open, from a store that is open (RO-06)."""

    snapshots: Recorder
    contents: Contents
    top: int

    def restore(
        self, target_id: str, *, last: ChangedBy, conflicts: Conflicts, by: ChangedBy
    ) -> Restored:
        """Do what `Snapshots.restore` does."""
        self.recover()
        target = self._own(target_id)
        before = self._before(f"before putting back {target.label}", last)
        plan = self._planned(target, before, overwrite=conflicts == "overwrite")
        if plan.conflicts and conflicts == "refuse":
            raise refused(plan)
        return self._carried_out(put_back_to(target), by, target, before, plan)

    def foreseen(self, target_id: str, *, last: ChangedBy, overwrite: bool) -> tuple[Plan, Look]:
        """Return what `restore` would do, and how the workspace is now."""
        target, before = self._own(target_id), self._before("looking ahead", last)
        plan = self._planned(target, before, overwrite=overwrite)
        return plan, Look(self.contents.tree, before.root)

    def apply(self, goal: Mapping[Parts, Entry | None], label: str, *, by: ChangedBy) -> Restored:
        """Do what `Snapshots.apply` does."""
        self.recover()
        before = self._before(f"before {label}", "others")
        plan = completed(goal, self.contents.tree, before.root, self._rules(before))
        return self._carried_out(label, by, None, before, plan)

    def recover(self) -> Restored | None:
        """Do what `Snapshots.recover` does."""
        intent = open_intent(self.contents.database, self.snapshots.place())
        return self._finishing(intent).finish() if intent else None

    def _finishing(self, intent: Intent) -> Finishing:
        return Finishing(self.snapshots, self.contents, self.top, intent, self.snapshots.way)

    def _own(self, id_: str) -> Snapshot:
        own = self.snapshots.recorded(self.contents).all()
        found = next((each for each in own if each.id == id_), None)
        if found is None:
            raise SnapshotUnavailable(
                f"no snapshot {id_!r} of this thread and workspace: it was taken elsewhere, or is"
                " too old"
            )
        return found

    def _before(self, label: str, by: ChangedBy) -> Snapshot:
        return self.snapshots.taken(self.contents, self.top, label, by=by, fresh=False).snapshot

    def _planned(self, target: Snapshot, before: Snapshot, *, overwrite: bool) -> Plan:
        own = self.snapshots.recorded(self.contents).all()
        since = [each for each in own if each.number >= target.number]
        pairs = itertools.pairwise(since)
        who = changed((new.by, self._paths(old, new)) for old, new in pairs)
        found = differences(self.contents.tree, target.root, before.root)
        unknown = beyond(found, self._rules(target), self._rules(before), who)
        then, now = (Look(self.contents.tree, each.root) for each in (target, before))
        return planned(who, then, now, overwrite=overwrite, unknown=unknown)

    def _paths(self, old: Snapshot, new: Snapshot) -> Iterator[Parts]:
        return (path for path, _, _ in between(self.contents, old, new))

    def _rules(self, snapshot: Snapshot) -> Rules:
        return decoded(self.contents.blob(snapshot.rules))

    def _carried_out(
        self, label: str, by: ChangedBy, target: Snapshot | None, before: Snapshot, plan: Plan
    ) -> Restored:
        self._sure_of_contents(plan.goal)
        intent = Intent(
            id=secrets.token_hex(8),
            thread=self.snapshots.thread,
            label=label,
            by=by,
            target=target.id if target else None,
            before=before.id,
            goal=plan.goal,
            left=plan.left,
            kept=plan.kept,
        )
        if not plan.goal:
            return report(intent, before, {})
        finishing = self._finishing(intent)
        finishing.begin()
        return finishing.finish()

    def _sure_of_contents(self, goal: Mapping[Parts, Entry | None]) -> None:
        for path, entry in goal.items():
            try:
                if entry and entry.kind == "file":
                    self.contents.blob(entry.content)
            except (KeyError, zlib.error):
                raise SnapshotUnavailable(
                    f"the content of {told(path)} is not in {self.snapshots.store.path}: nothing"
                    " was changed"
                ) from None


def put_back_to(target: Snapshot) -> str:
    """Return the label of the snapshot that is taken once a workspace was put back."""
    return f"put back {target.label}"


def refused(plan: Plan) -> RestoreRefused:
    """Return the error that names what putting back would undo of somebody else's."""
    paths = tuple(sorted(map(told, plan.conflicts)))
    named = ", ".join(paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return RestoreRefused(
        f"nothing was put back: somebody else also changed {named}{more}: keep these as they are,"
        " or overwrite them",
        paths,
    )
