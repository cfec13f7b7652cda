"""Deciding what is put back of a workspace, and having it put back."""

import itertools
import secrets
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.comparing import between
from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.difference import differences
from daruma.tools.snapshots.domain import beyond
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.finishing import Finishing, report
from daruma.tools.snapshots.ignored import Rules, decoded
from daruma.tools.snapshots.intent import Intent, open_intent
from daruma.tools.snapshots.looking import Look
from daruma.tools.snapshots.outcome import (
    By,
    Conflicts,
    Restored,
    RestoreRefused,
    Snapshot,
    SnapshotUnavailable,
)
from daruma.tools.snapshots.path_text import told
from daruma.tools.snapshots.restoring import Plan, changed, planned
from daruma.tools.snapshots.single_paths import completed

if TYPE_CHECKING:
    from daruma.tools.snapshots.snapshots import Snapshots

_NAMED: Final = 10
"""Paths that the error of a refusal names; it carries all of them."""


@dataclass
class PuttingBack:
    """Puts back paths of a workspace that is open, from a store that is open."""

    snapshots: "Snapshots"
    contents: Contents
    top: int

    def restore(self, target_id: str, *, last: By, conflicts: Conflicts, by: By) -> Restored:
        """Do what `Snapshots.restore` does."""
        self.recover()
        target = self._own(target_id)
        before = self._before(f"before putting back {target.label}", last)
        plan = self._planned(target, before, overwrite=conflicts == "overwrite")
        if plan.conflicts and conflicts == "refuse":
            raise refused(plan)
        return self._carried_out(put_back_to(target), by, target, before, plan)

    def foreseen(self, target_id: str, *, last: By, overwrite: bool) -> tuple[Plan, Look]:
        """Return what `restore` would do, and how the workspace is now."""
        target, before = self._own(target_id), self._before("looking ahead", last)
        plan = self._planned(target, before, overwrite=overwrite)
        return plan, Look(self.contents.tree, before.root)

    def apply(self, goal: Mapping[Parts, Entry | None], label: str, *, by: By) -> Restored:
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

    def _before(self, label: str, by: By) -> Snapshot:
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
        self, label: str, by: By, target: Snapshot | None, before: Snapshot, plan: Plan
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
