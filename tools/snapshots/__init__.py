"""Snapshots of a workspace: taken, compared, and put back, without touching the user's git.

They are kept outside of the workspace. What the thread did is told apart from what others did;
putting back is planned path by path, is on record before it begins, and goes on after a crash (RO
rules).
"""

from daruma.tools.snapshots._records import delete_snapshots
from daruma.tools.snapshots._restore import put_back_to
from daruma.tools.snapshots._snapshots import (
    Snapshots,
    SnapshotsAround,
    preview_restore,
    snapshot_before,
    with_snapshots,
    work_once,
)
from daruma.tools.snapshots._store import (
    ROOT_NAME,
    Change,
    ChangedBy,
    Conflicts,
    Entry,
    EntryKind,
    Restored,
    RestoreRefused,
    Snapshot,
    SnapshotUnavailable,
    Store,
    Tree,
    store_of,
)

__all__ = [
    "ROOT_NAME",
    "Change",
    "ChangedBy",
    "Conflicts",
    "Entry",
    "EntryKind",
    "RestoreRefused",
    "Restored",
    "Snapshot",
    "SnapshotUnavailable",
    "Snapshots",
    "SnapshotsAround",
    "Store",
    "Tree",
    "delete_snapshots",
    "preview_restore",
    "put_back_to",
    "snapshot_before",
    "store_of",
    "with_snapshots",
    "work_once",
]
