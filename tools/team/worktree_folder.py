"""Where the worktrees of team members lie."""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from daruma.state.data_dir import data_dir

_LONGEST: Final = 40
"""Characters of a phase's id that stand in the name of its folder."""


def worktree_folder(workspace: Path, thread: str, phase: str) -> Path:
    """Return where the member that carries out a phase works, whatever the phase is called."""
    readable = re.sub(r"[^A-Za-z0-9-]+", "_", phase)[:_LONGEST]
    top = data_dir() / "worktrees" / _digest(os.path.realpath(workspace))
    return top / _digest(thread)[:16] / f"{readable}-{_digest(phase)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]
