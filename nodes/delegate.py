"""Hand calls of ``delegate`` to helpers: who may begin, and from which state of the files."""

from pathlib import Path

from daruma.state.calls import ToolTask, calls_to_run, set_status
from daruma.state.channels import State, Update
from daruma.state.errors import DarumaError
from daruma.state.events import MemberStarted, ToolCompleted, ToolStarted
from daruma.state.spending import delegations, savepoint_name, text_of, writes
from daruma.tools.calls import tool_result
from daruma.tools.context import Context
from daruma.tools.rollback import Written, write_savepoint
from daruma.tools.team import expert_of, worktree_folder


async def delegate(state: State, context: Context) -> Update:
    """Begin a helper for each call; what can not begin is answered at once (PL-08).

    Those that write all begin from the workspace as it is now: it is kept under a savepoint.
    """
    calls = calls_to_run(state.calls, delegated=True)
    refused = await _refusals(state, calls, context)
    writers = [call for call in calls if call.id not in refused and writes(call)]
    written = Written([])
    if writers:
        name = savepoint_name(state, writers[0])
        written = await write_savepoint(state.task, "phase", context, phase_id=name)
    for call in calls:
        _emit_started(call, state, context, refused.get(call.id))
    return {
        "calls": tuple(
            set_status(call, "failed") if call.id in refused else call for call in state.calls
        ),
        "messages": [
            tool_result(call, refused[call.id], ok=False) for call in calls if call.id in refused
        ],
        "savepoints": written.savepoints,
    }


async def _refusals(state: State, calls: tuple[ToolTask, ...], context: Context) -> dict[str, str]:
    """Return why calls can not be begun, by their ids: no task, no such expert, no files."""
    found = dict[str, str]()
    for call, given in zip(calls, delegations(state, calls), strict=True):
        try:
            await expert_of(given, context.settings)
        except DarumaError as error:
            found[call.id] = f"Error: {error}"
        if given.task.helps == "writes" and given.task.workspace is None:
            found[call.id] = "Error: the task has no workspace: a helper has no files to write"
        if not given.task.goal.strip():
            found[call.id] = "Error: the call does not say what to do: task"
    return found


def _emit_started(call: ToolTask, state: State, context: Context, refused: str | None) -> None:
    summary = " ".join(text_of(call, "task").split())[:80]
    context.emit(ToolStarted(call_id=call.id, tool=call.name, summary=summary))
    if refused:
        context.emit(
            ToolCompleted(call_id=call.id, tool=call.name, ok=False, seconds=0.0, output=refused)
        )
        return
    workspace = state.task.workspace if state.task else None
    if workspace and writes(call):
        thread = f"{context.files_of}\0{call.message_id}"
        workspace = str(worktree_folder(Path(workspace), thread, call.id))
    started = MemberStarted(phase_id=call.id, expert=text_of(call, "expert"), workspace=workspace)
    context.emit(started)
