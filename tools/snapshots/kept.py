"""Keeping the workspace around a tool call, as its effect asks for."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any, Final

from daruma.tools.files.threads import in_thread
from daruma.tools.snapshots.around import around
from daruma.tools.snapshots.outcome import SnapshotUnavailable
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.tool import Tool

EDITOR: Final = "str_replace_editor"


def kept(
    tool: Tool, args: Mapping[str, Any], snapshots: Snapshots | None
) -> AbstractAsyncContextManager[None]:
    """Return what a call runs in: a whole look before and after a command, one file for an edit.

    A tool that changes nothing in the workspace, by its own word, needs none.
    """
    if snapshots is None or tool.effect != "workspace":
        return nullcontext()
    if tool.builtin and tool.name == EDITOR:
        return nullcontext() if args.get("command") == "view" else _edit(args, snapshots)
    return around(snapshots, tool.name)


@asynccontextmanager
async def _edit(args: Mapping[str, Any], snapshots: Snapshots) -> AsyncIterator[None]:
    """Note what an edit leaves. The editor itself keeps what was there before."""
    path = str(args.get("path", ""))
    with suppress(SnapshotUnavailable):
        await in_thread(snapshots.open, f"edit of {path}")
    yield
    with suppress(SnapshotUnavailable):
        await in_thread(snapshots.note, [path], f"edit of {path}")
