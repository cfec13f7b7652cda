"""What running a call changes, and what is done about one that was cut short (DU-06)."""

from daruma.state.digest import digest
from daruma.state.settings import Settings
from daruma.state.tool_task import ToolTask
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.journal import Effect, Settles
from daruma.tools.policy import decide, is_known_safe
from daruma.tools.sandbox.level import SandboxUnavailable
from daruma.tools.snapshots.kept import only_looks
from daruma.tools.tool import Tool

COMMANDS = frozenset({"run_command", "run_tests"})
"""The built-in tools that run commands: what they can reach depends on the sandbox."""


async def effect_of(
    call: ToolTask, tool: Tool, workspace: str | None, context: Context
) -> Effect | None:
    """Return the effect of a call; None for one that changes nothing, and may be made twice."""
    if tool.effect == "none" or only_looks(tool, call.args):
        return None
    here = tool.effect == "workspace" and workspace is not None
    confined = here and await _confined(call, tool, context)
    kept = context.settings.rollback.snapshots
    return Effect(
        call=call.result_id,
        digest=digest([call.name, call.args]),
        settles=settles(tool, call, context.settings, restores=confined and kept),
        workspace=workspace if here and workspace else "",
    )


def settles(tool: Tool, call: ToolTask, settings: Settings, *, restores: bool) -> Settles:
    """Say what becomes of a call that was cut short, and may or may not have had its effect.

    What can be made twice is made again. What can only have changed the workspace, whose state
    from before is kept (``restores``), is undone and made again. About anything else a person is
    asked, or the model is told, as the policy says.
    """
    if tool.repeatable:
        return "again"
    if restores:
        return "restore"
    return decide(tool, call.args, settings.tools).in_doubt or settings.tools.in_doubt


async def _confined(call: ToolTask, tool: Tool, context: Context) -> bool:
    """Whether a call can have changed nothing outside of the workspace."""
    if not tool.builtin or tool.name not in COMMANDS:
        return True  # by its own word, or as it is written
    if tool.name == "run_tests" or is_known_safe(call.args):
        return True
    if context.settings.sandbox.network:
        return False
    try:
        return (await context.open_sandbox()).level != "none"
    except (SandboxUnavailable, ToolError):
        return False
