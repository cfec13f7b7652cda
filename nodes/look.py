"""Run one call with which the planner looks around. Each runs on its own, as those of ``tool``."""

from daruma.state.calls import Dispatch
from daruma.state.channels import Update
from daruma.tools.call_execution import execute_call
from daruma.tools.context import Context, visible_tools
from daruma.tools.planning import reading_tools


async def look(dispatch: Dispatch, context: Context) -> Update:
    """Run the call with one of the tools that read, and answer it (PL-01a)."""
    call = dispatch.call
    known = reading_tools(visible_tools(dispatch.task, context)).find(call.name)
    reads = known is not None and known.only_reads(call.args)  # a hook may have changed them
    return await execute_call(dispatch, known if reads else None, context)
