"""Saying which path was meant, where a call gave only the tail of one shown before (CX-06)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from daruma.tools.errors import FileMissing, ToolError
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.paths import shown
from daruma.tools.files.threads import in_thread

MOST_NAMED: Final = 5


async def advised(error: ToolError, paths: Sequence[str], workspace: str | None) -> str:
    """Return what is said of an error; for a missing file, which of ``paths`` are there."""
    meant = isinstance(error, FileMissing) and workspace and paths
    there = await in_thread(_there, paths, workspace) if meant and workspace else []
    if not there:
        return str(error)
    whole = "it was shown as" if len(there) == 1 else "shown before were"
    named = ", ".join(shown(path) for path in there[:MOST_NAMED])
    one = "it" if len(there) == 1 else "one of them"
    return f"{str(error).partition(': list ')[0]}; {whole} {named}: use {one} whole"


def _there(paths: Sequence[str], workspace: str) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        try:
            found[FilesBeneath(Path(workspace)).locate(path)] = None
        except (ToolError, OSError):
            continue
    return list(found)
