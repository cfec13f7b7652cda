"""Run one tool task. Each runs on its own, so that a crash repeats only what had not finished."""

from daruma.state.calls import Dispatch
from daruma.state.channels import Update
from daruma.tools.call_execution import execute_call
from daruma.tools.context import Context, visible_tools


async def tool(dispatch: Dispatch, context: Context) -> Update:
    """Run the call with the tool that its task is shown, and answer it."""
    known = visible_tools(dispatch.task, context).find(dispatch.call.name)
    return await execute_call(dispatch, known, context)
