"""Run one tool task. Each runs on its own, so that a crash repeats only what had not finished."""

from langgraph.errors import GraphBubbleUp

from daruma.state.channels import Update
from daruma.state.events import ToolCompleted, ToolStarted
from daruma.state.tool_task import Dispatch, ToolTask, moved
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.results import storable, tool_result
from daruma.tools.time_limit import run_within


async def tool(dispatch: Dispatch, context: Context) -> Update:
    """Run the call and answer it. A tool that fails answers with its error; the loop goes on."""
    call = dispatch.call
    started = context.now()
    context.emit(ToolStarted(call_id=call.id, tool=call.name, summary=summary(call)))
    ok, text = await _run(dispatch, context)
    context.emit(
        ToolCompleted(
            call_id=call.id,
            tool=call.name,
            ok=ok,
            seconds=context.now() - started,
            output=storable(text)[:2000],
        )
    )
    return {
        "messages": [tool_result(call, text, ok=ok)],
        "calls": moved(call, "done" if ok else "failed"),
    }


async def _run(dispatch: Dispatch, context: Context) -> tuple[bool, str]:
    call, workspace = dispatch.call, dispatch.task.workspace
    known = context.tools.find(call.name, context.settings.tools, workspace=workspace is not None)
    if known is None:
        return False, f"Error: the tool {call.name!r} is no longer there"
    try:
        at = await context.surroundings(workspace)
        return True, await run_within(context.settings.tools.timeout, known, call.args, at)
    except ToolError as error:
        return False, f"Error: {error}"
    except GraphBubbleUp:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a tool's bug does not end the loop
        return False, f"Error: {type(error).__name__}: {error}"


def summary(call: ToolTask) -> str:
    """Name a call's short arguments, for a line of progress."""
    shown = (str(value) for value in call.args.values() if isinstance(value, str | int))
    return " ".join(text for text in shown if len(text) <= 80 and "\n" not in text)
