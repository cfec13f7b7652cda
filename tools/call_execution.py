"""Running one call of an answer, for the nodes that do: once, with its result and its events."""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from langgraph.errors import GraphBubbleUp

from daruma.state.calls import Dispatch, ToolTask, await_approval, set_status
from daruma.state.channels import Update
from daruma.state.errors import CutOff
from daruma.state.events import ApprovalCompleted, ToolCompleted, ToolStarted
from daruma.state.messages import short_values
from daruma.state.steps import Step
from daruma.tools.calls import (
    Effect,
    Outcome,
    Tool,
    ask_outcome,
    call_effect,
    check_permission,
    outcome_without_tool,
    run_once,
    run_with_timeout,
    snapshots_around,
    tool_result,
    void_approval,
)
from daruma.tools.context import Context
from daruma.tools.errors import GroundsChanged, NotReadOnly, OutcomeUnknown, ToolError
from daruma.tools.sandbox import SandboxUnavailable
from daruma.tools.snapshots import SnapshotUnavailable
from daruma.tools.text import mask_keys
from daruma.tools.threads import NotStarted
from daruma.tools.workspace_tools import advise_paths

_OF_WHO_WAITS: Final = (CancelledError, KeyboardInterrupt, GeneratorExit)
"""What ends a call from without; all else that flies is the tool's own."""


async def execute_call(dispatch: Dispatch, known: Tool | None, context: Context) -> Update:
    """Run the call and answer it. A tool that fails answers with its error; the loop goes on.

    ``known`` is its tool, None where there is none of its name any more.

    Approved calls that write run one by one (TL-02); one that would not run as it was shown is not
    answered, but asked about again (TL-13a). A command that is run read-only before a person is
    asked has no effect, and is run again after a crash (TL-24).

    What it changes is changed once: a call that was made before the machine was killed is answered
    with what came of it then; about one that was cut short a person may be asked (DU-06).
    """
    call, at = dispatch.call, context.now()
    if known is None:
        gone = await outcome_without_tool(call, context.journal)
        context.emit(ToolStarted(call_id=call.id, tool=call.name, summary=short_values(call.args)))
        _emit_end(call, context, 0.0, gone.text, ok=gone.status == "done")
        return _result_update(call, gone)

    async def work(key: str) -> Outcome:
        return await _run_and_report(dispatch, known, key, context)

    workspace = dispatch.task.workspace
    if call.read_only and not await _can_read_only(context):
        return {"calls": await_approval(call, "")}
    effect = await call_effect(call, known, workspace, context.settings, context.open_sandbox)
    alone = context.turns.one_by_one(workspace) if call.approved and effect else nullcontext()
    try:
        async with alone:
            in_turn = effect or call.read_only  # it looks at what those before it have written
            outcome = await (_run_in_turn(dispatch, effect, work, context) if in_turn else work(""))
    except NotReadOnly as refused:
        return {"calls": await_approval(call, str(refused))}
    except NotStarted:
        raise CancelledError from None  # who gave the run a time limit knows it by its very type
    except GroundsChanged as changed:
        context.emit(ApprovalCompleted(approval_id=call.id, decision="void"))
        return {"calls": void_approval(call, changed.changes)}
    at = max(at, context.now() - outcome.seconds)  # it may have waited for its turn
    step = Step(
        kind="tool",
        task_id=dispatch.task.id,
        phase_id=dispatch.phase_id,
        ok=outcome.status == "done",
        at=at,
        seconds=outcome.seconds,
        signature=call.name,
    )
    return {**_result_update(call, outcome, known), "steps": [step]}


async def _can_read_only(context: Context) -> bool:
    try:
        return (await context.open_sandbox()).level == "namespace"
    except (SandboxUnavailable, ToolError):
        return False


async def _run_in_turn(
    dispatch: Dispatch,
    effect: Effect | None,
    work: Callable[[str], Awaitable[Outcome]],
    context: Context,
) -> Outcome:
    workspace = (effect.workspace if effect else dispatch.task.workspace) or ""
    snapshots = context.snapshots(workspace or None)
    async with context.turns.turn(workspace, snapshots, context.journal) as turn:
        if effect is None:
            return await work("")
        return await run_once(
            dispatch.call,
            effect,
            turn,
            context.journal,
            work,
            lambda question: ask_outcome(question, context.now(), context.emit),
            context.emit,
        )


def _result_update(call: ToolTask, outcome: Outcome, known: Tool | None = None) -> Update:
    done = outcome.status == "done"
    ran = known if outcome.status != "failed" else None
    return {
        "messages": [
            tool_result(
                call,
                outcome.text,
                ok=done,
                images=outcome.images,
                reference=outcome.reference,
                unchanged=outcome.unchanged,
                definition=ran.definition if ran else "",
            )
        ],
        "calls": set_status(call, outcome.status),
    }


def _emit_end(call: ToolTask, context: Context, seconds: float, text: str, *, ok: bool) -> None:
    said = text[:2000]
    context.emit(
        ToolCompleted(call_id=call.id, tool=call.name, ok=ok, seconds=seconds, output=said)
    )


async def _run_and_report(dispatch: Dispatch, known: Tool, key: str, context: Context) -> Outcome:
    call, started = dispatch.call, context.now()
    context.emit(ToolStarted(call_id=call.id, tool=call.name, summary=short_values(call.args)))
    try:
        outcome = await _run_tool(dispatch, known, key, context)
        outcome = mask_keys(outcome)  # before anything keeps it
        # A large output is kept beside the state, before anything refers to it.
        most = context.settings.tools.max_result_chars
        short = await context.outputs.shorten(outcome.text, most)
        outcome = replace(outcome, text=short.text, reference=short.reference)
    except (GroundsChanged, NotReadOnly) as error:
        _emit_end(call, context, context.now() - started, f"Not run: {error}", ok=False)
        raise
    outcome = replace(outcome, seconds=context.now() - started)
    _emit_end(call, context, outcome.seconds, outcome.text, ok=outcome.status == "done")
    return outcome


async def _run_tool(dispatch: Dispatch, known: Tool, key: str, context: Context) -> Outcome:
    call, workspace = dispatch.call, dispatch.task.workspace
    try:
        exact = context.exact_calls.exact(context.thread_id, call)
        args = exact.args | ({known.idempotency_key: key} if known.idempotency_key else {})
        at = await context.surroundings(workspace, task=dispatch.task, call_id=call.id)
        at = replace(at, read_only=call.read_only)
        snapshots = None if call.read_only else context.snapshots(workspace)
        async with snapshots_around(known, exact.args, snapshots, key) as looks:
            with context.servers.in_use() if context.servers else nullcontext():
                await check_permission(call, known, workspace, at, context.tools)
                limit = context.settings.tools.timeout
                text = await run_with_timeout(limit, known, args, at)
        same = looks is not None and looks.after is not None and not looks.after.changes
        return Outcome.done(text, unchanged=same or call.read_only)
    except SnapshotUnavailable as error:
        return Outcome("failed", f"Error: not run, as it could not be undone: {error}")
    except OutcomeUnknown as error:
        return Outcome("unknown", f"Error: {error}")
    except ToolError as error:
        return Outcome("failed", f"Error: {await advise_paths(error, dispatch.shown, workspace)}")
    except (GraphBubbleUp, GroundsChanged, NotReadOnly, CutOff, *_OF_WHO_WAITS):
        raise
    except BaseException as error:  # noqa: BLE001  # a tool's bug does not end the loop
        return Outcome("failed", f"Error: {type(error).__name__}: {error}")
