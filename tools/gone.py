"""What is said of a call whose tool is no longer there: it may have been made while it was."""

from daruma.state.digest import digest
from daruma.state.tool_task import ToolTask
from daruma.tools.context import Context
from daruma.tools.errors import OutcomeUnknown
from daruma.tools.journal import Effect, Entry, Outcome


async def without_tool(call: ToolTask, context: Context) -> Outcome:
    """Return what came of a call as far as it is on record; else that there is no such tool."""
    effect = Effect(call.result_id, digest([call.name, call.args]), "tell")
    entry = await context.journal.begin(effect)
    outcome = entry.outcome or _said(call, entry)
    await context.journal.end(entry, outcome)
    return outcome


def _said(call: ToolTask, entry: Entry) -> Outcome:
    if entry.cut_short:
        how = f"{call.name} was cut short when the process ended, and is no longer there"
        return Outcome("unknown", f"Error: {OutcomeUnknown(how)}")
    return Outcome("failed", f"Error: the tool {call.name!r} is no longer there")
