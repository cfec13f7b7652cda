"""Where team members work: in folders of Daruma's own, one for each phase."""

import hashlib
import os
from pathlib import Path

from daruma.state.data_dir import data_dir


def worktree_of(workspace: Path, thread: str, plan_id: str, phase_id: str) -> Path:
    """Return the folder for one phase of a plan; the same each time it is asked for."""
    home = data_dir() / "worktrees" / _digest(os.path.realpath(workspace))
    return home / _digest(f"{thread}\0{plan_id}") / _name(phase_id)


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


def _name(phase_id: str) -> str:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in phase_id)
    return (
        plain[:40]
        if plain == phase_id and len(plain) <= 40
        else f"{plain[:40]}-{_digest(phase_id)[:8]}"
    )
