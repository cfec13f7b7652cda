"""Run one tool task. Each runs on its own, so that a crash repeats only what had not finished."""

from langgraph.errors import GraphBubbleUp

from daruma.state.channels import Update
from daruma.state.events import ToolCompleted, ToolStarted
from daruma.state.tool_task import Dispatch, ToolTask, ToolTaskStatus, moved
from daruma.tools.context import Context
from daruma.tools.errors import OutcomeUnknown, ToolError
from daruma.tools.offer import offer_of
from daruma.tools.permission import check_permission
from daruma.tools.results import storable, tool_result
from daruma.tools.snapshots.kept import kept
from daruma.tools.snapshots.outcome import SnapshotUnavailable
from daruma.tools.time_limit import run_within


async def tool(dispatch: Dispatch, context: Context) -> Update:
    """Run the call and answer it. A tool that fails answers with its error; the loop goes on."""
    call = dispatch.call
    started = context.now()
    context.emit(ToolStarted(call_id=call.id, tool=call.name, summary=summary(call)))
    status, text = await _run(dispatch, context)
    context.emit(
        ToolCompleted(
            call_id=call.id,
            tool=call.name,
            ok=status == "done",
            seconds=context.now() - started,
            output=storable(text)[:2000],
        )
    )
    return {
        "messages": [tool_result(call, text, ok=status == "done")],
        "calls": moved(call, status),
    }


async def _run(dispatch: Dispatch, context: Context) -> tuple[ToolTaskStatus, str]:
    call, workspace = dispatch.call, dispatch.task.workspace
    known = offer_of(dispatch.task, context).find(call.name)
    if known is None:
        return "failed", f"Error: the tool {call.name!r} is no longer there"
    try:
        await check_permission(call, known, workspace, context)
        at = await context.surroundings(workspace)
        async with kept(known, call.args, context.snapshots(workspace)):
            limit = context.settings.tools.timeout
            return "done", await run_within(limit, known, call.args, at)
    except SnapshotUnavailable as error:
        return "failed", f"Error: not run, as it could not be undone: {error}"
    except ToolError as error:
        status: ToolTaskStatus = "unknown" if isinstance(error, OutcomeUnknown) else "failed"
        return status, f"Error: {error}"
    except GraphBubbleUp:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a tool's bug does not end the loop
        return "failed", f"Error: {type(error).__name__}: {error}"


def summary(call: ToolTask) -> str:
    """Name a call's short arguments, for a line of progress."""
    shown = (str(value) for value in call.args.values() if isinstance(value, str | int))
    return " ".join(text for text in shown if len(text) <= 80 and "\n" not in text)
