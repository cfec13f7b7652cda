"""What approvals rest on: looked at when a person is asked, and again when the answer is there."""

import os
import sys
from pathlib import Path

from daruma.state.approval import Grounds
from daruma.state.tool_task import ToolTask
from daruma.tools.commands.environment import command_environment
from daruma.tools.context import Context
from daruma.tools.files.threads import in_thread
from daruma.tools.files.tree_id import tree_id

COSMETIC = frozenset({"TERM", "LANG", "LANGUAGE", "TZ", "SHELL", "USER", "LOGNAME"})
"""Variables that differ from one terminal to the next and choose no program: not part of a yes."""


async def grounds_of(
    call: ToolTask, workspace: str | None, context: Context, *, tree: str = ""
) -> Grounds:
    """Return what a call's approval rests on, with the workspace's content where that is given.

    Only Daruma's own tools work in the workspace. Raises :class:`~daruma.tools.errors.ToolError`
    for a workspace that is gone, and :class:`~daruma.tools.sandbox.level.SandboxUnavailable`.
    """
    known = context.tools.named(call.name)
    if known is None or not known.builtin or workspace is None:
        return Grounds()
    if call.name != "run_command":
        return Grounds(tree=tree)
    sandbox = await context.open_sandbox()
    return Grounds(
        sandbox=sandbox.level,
        not_covered=sandbox.not_covered,
        environment=_environment(Path(workspace)),
        tree=tree,
    )


async def tree_now(workspace: str | None, context: Context) -> str:
    """Return the id of a workspace's content. Raises ``ToolError`` for one that is gone."""
    if workspace is None:
        return ""
    at = await context.surroundings(workspace)
    return await in_thread(tree_id, at.needs_workspace().root)


def _environment(root: Path) -> dict[str, str]:
    every = command_environment(os.environ, root, Path(sys.executable).parent)
    return {k: v for k, v in every.items() if k not in COSMETIC and not k.startswith("LC_")}
