"""The last look before a call runs: it may be resumed under other rules, in another place."""

from typing import Final

from daruma.state.approval import approval_of
from daruma.state.settings_tools import Tools
from daruma.state.tool_task import ToolTask
from daruma.tools.context import Context
from daruma.tools.errors import NotPermitted
from daruma.tools.grounds import grounds_of
from daruma.tools.policy import decide
from daruma.tools.tool import Tool

CHANGED: Final = (
    "not run: what was approved is not what would run now, its folder, environment or "
    "sandbox is another; call it again to have it asked"
)


async def check_permission(
    call: ToolTask, tool: Tool, workspace: str | None, context: Context
) -> None:
    """Check that the policy lets a call run, and that it is what was approved, if it was.

    Raises :class:`~daruma.tools.errors.NotPermitted`, whose text is for the model.
    """
    if said := forbidden(call, tool, context.settings.tools):
        raise NotPermitted(said)
    if not call.approved:
        return
    grounds = await grounds_of(call, workspace, context)
    if approval_of(call, workspace, grounds).exact != call.approved:
        raise NotPermitted(CHANGED)


def forbidden(call: ToolTask, tool: Tool, settings: Tools) -> str | None:
    """Return why the policy does not let a call run as it stands; None where it does."""
    decision = decide(tool, call.args, settings).decision
    if decision == "deny":
        return "not run: denied by policy"
    if decision == "confirm" and not call.approved:
        return "not run: a person has to approve this; call it again to have it asked"
    return None
