"""What putting back a snapshot would do, looked at beforehand and without a trace."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daruma.tools.snapshots.beneath import workspace_opened
from daruma.tools.snapshots.difference import as_changes
from daruma.tools.snapshots.outcome import By, Change, Conflicts
from daruma.tools.snapshots.path_text import told
from daruma.tools.snapshots.putting_back import PuttingBack

if TYPE_CHECKING:
    from daruma.tools.snapshots.snapshots import Snapshots


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be done to which path; ``conflicts`` were changed by the work and others too."""

    changes: tuple[Change, ...]
    conflicts: tuple[str, ...] = ()


class _Seen(Exception):
    def __init__(self, preview: Preview) -> None:
        self.preview = preview


def preview(
    snapshots: "Snapshots", target: str, *, last: By = "others", conflicts: Conflicts = "refuse"
) -> Preview:
    """Say what `Snapshots.restore` would do now; blocks.

    Nothing is kept of the look: what others changed is still to be found by whoever looks next.
    Raises SnapshotUnavailable.
    """
    snapshots.recover()
    try:
        with snapshots.store.locked() as contents, workspace_opened(snapshots.workspace) as top:
            plan, now = PuttingBack(snapshots, contents, top).foreseen(
                target, last=last, overwrite=conflicts == "overwrite"
            )
            changes = as_changes((path, now(path), goal) for path, goal in plan.goal.items())
            raise _Seen(Preview(changes, tuple(sorted(map(told, plan.conflicts)))))
    except _Seen as seen:  # raised, so that the store takes back all that was written
        return seen.preview
