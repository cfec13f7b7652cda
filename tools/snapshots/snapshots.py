"""The snapshots of one workspace, as one thread takes them."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from daruma.state.data_dir import data_dir
from daruma.tools.snapshots.outcome import Change, Snapshot
from daruma.tools.snapshots.store import Store

By = Literal["work", "others", "undo"]
"""Who made the changes that lead to a snapshot: the thread's work, somebody else, an undo."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot, and what has changed since the thread's last one that no undo has made."""

    snapshot: Snapshot
    changes: tuple[Change, ...] = ()


def store_of(workspace: Path) -> Path:
    """Return where the snapshots of a workspace are kept.

    A team member's worktree shares the store of the workspace that it was made from.
    """
    home, place = data_dir(), Path(os.path.realpath(workspace))
    worktrees = Path(os.path.realpath(home / "worktrees"))
    if place.is_relative_to(worktrees) and place != worktrees:
        key = place.relative_to(worktrees).parts[0]
    else:
        key = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return home / "snapshots" / key / "store.sqlite3"


class Snapshots:
    """Takes snapshots of a workspace for a thread, compares them, and puts them back.

    All methods block: call them in a thread. Several threads and processes may use one store.
    """

    def __init__(
        self,
        workspace: Path,
        thread: str,
        store: Store,
        *,
        exclude: Sequence[str] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self.workspace = workspace
        self.thread = thread
        self.store = store
        self.exclude = tuple(exclude)
        self.now = now
