"""In which file the snapshots of a workspace are kept."""

import hashlib
import os
from pathlib import Path

from daruma.state.data_dir import data_dir


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
