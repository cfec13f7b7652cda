"""Where it is kept what a thread has seen and edited of a workspace's files."""

import hashlib
from pathlib import Path

from daruma.state.data_dir import data_dir


def edit_folder(workspace: Path | str, thread: str) -> Path:
    """Return the folder of the edit histories of a thread in a workspace."""
    key = hashlib.sha256(f"{workspace}\0{thread}".encode()).hexdigest()[:32]
    return data_dir() / "edits" / key
