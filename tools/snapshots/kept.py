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
    tool: Tool, args: Mapping[str, Any], snapshots: Snapshots | None, key: str
) -> AbstractAsyncContextManager[None]:
    """Return what a call runs in: a whole look before and after a command, one file for an edit.

    A tool that changes nothing in the workspace, by its own word, needs none. ``key`` is the
    call's in the journal: by it what was there before is found again.
    """
    if snapshots is None or tool.effect != "workspace" or only_looks(tool, args):
        return nullcontext()
    what = f"{tool.name} {key}"
    if tool.builtin and tool.name == EDITOR:
        return _edit(args, snapshots, what)
    return around(snapshots, what)


def only_looks(tool: Tool, args: Mapping[str, Any]) -> bool:
    """Whether a call of a tool that can change files is one that does not."""
    return tool.builtin and tool.name == EDITOR and args.get("command") == "view"


def is_before(label: str, key: str) -> bool:
    """Whether the snapshot of a label was taken before the call of a key."""
    return label.startswith("before ") and label.endswith(f" {key}")


@asynccontextmanager
async def _edit(args: Mapping[str, Any], snapshots: Snapshots, what: str) -> AsyncIterator[None]:
    """Note what an edit leaves. The editor itself keeps what was there before."""
    path = str(args.get("path", ""))
    with suppress(SnapshotUnavailable):
        await in_thread(snapshots.open, f"before {what}")
    yield
    with suppress(SnapshotUnavailable):
        await in_thread(snapshots.note, [path], f"edit of {path}")
