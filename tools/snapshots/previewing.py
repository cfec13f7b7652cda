"""What putting back a snapshot would do, looked at beforehand and without a trace."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import workspace_opened
from daruma.tools.snapshots.difference import Difference, as_changes
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


def _opened(found: Difference, goal: Collection[Parts]) -> bool:
    """Whether it is a directory that comes or goes with what lies in it, which says it all."""
    path, was, now = found
    kinds = {each.kind for each in (was, now) if each}
    alone = (was is None or now is None) and kinds == {"directory"}
    return alone and any(other[: len(path)] == path for other in goal if len(other) > len(path))


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
            found = [(path, now(path), goal) for path, goal in plan.goal.items()]
            changes = as_changes(each for each in found if not _opened(each, plan.goal))
            raise _Seen(Preview(changes, tuple(sorted(map(told, plan.conflicts)))))
    except _Seen as seen:  # raised, so that the store takes back all that was written
        return seen.preview
