"""The last look before a call runs: it may be resumed under other rules, in another place."""

from daruma.state.approval import approval_of
from daruma.state.tool_task import ToolTask
from daruma.tools.context import Context
from daruma.tools.errors import NotPermitted
from daruma.tools.grounds import grounds_of
from daruma.tools.policy import decide
from daruma.tools.tool import Tool


async def check_permission(
    call: ToolTask, tool: Tool, workspace: str | None, context: Context
) -> None:
    """Check that the policy lets a call run, and that it is what was approved, if it was.

    Raises :class:`~daruma.tools.errors.NotPermitted`, whose text is for the model.
    """
    decision = decide(tool, call.args, context.settings.tools).decision
    if decision == "deny":
        raise NotPermitted("not run: denied by policy")
    if decision == "confirm" and not call.approved:
        raise NotPermitted("not run: a person has to approve this; call it again to have it asked")
    if not call.approved:
        return
    grounds = await grounds_of(call, workspace, context)
    if approval_of(call, workspace, grounds).exact != call.approved:
        raise NotPermitted(
            "not run: what was approved is not what would run now, its folder, environment or "
            "sandbox is another; call it again to have it asked"
        )
