"""Build the one result that a task ends with."""

from contextlib import suppress
from dataclasses import replace

from langchain_core.messages import AIMessage, ToolMessage

from daruma.state import plan as phases
from daruma.state.channels import State, Update
from daruma.state.emergency import Words, words_of
from daruma.state.events import TaskCompleted
from daruma.state.messages import Messages
from daruma.state.outcome import END, answer, result_of, stopped_text, work_status
from daruma.state.task import Status
from daruma.state.verification import Verification
from daruma.tools.calls import results_for_unanswered
from daruma.tools.context import Context, receive_before_end
from daruma.tools.sandbox import STRENGTH, SandboxUnavailable
from daruma.tools.skills import untrusted_note
from daruma.tools.threads import in_thread

_COMMANDS = frozenset({"run_command", "run_tests"})
"""The tools that run commands."""


async def finish(state: State, context: Context) -> Update:
    """End the task: every call has its result, every ending says what it is.

    A task without a plan goes on where a person has said something meanwhile (FA-14).
    """
    status = task_status(state)
    goes_on = status == "completed" and state.plan is None
    if goes_on and (told := await receive_before_end(state, context)):
        wanted = state.structured
        return {**told, "structured": replace(wanted, value=None)} if wanted else told
    output = output_text(state, status, words_of(context.settings.fallback_chain))
    level, left = await _weakest_confinement(state, context)
    notes = _notes(state)
    if left:
        notes += (f"commands ran at sandbox level {level}, not covered: {', '.join(left)}",)
    if folders := context.settings.skills.folders:
        workspace = state.task.workspace if state.task else None
        notes += await in_thread(untrusted_note, folders, workspace)
    result = result_of(state, status, output, context.now(), notes=notes, sandbox=level)
    if not context.settings.fallback_chain.has_emergency:
        result = replace(result, error_struct=None)
    result = replace(result, context_usage=context.measure(state, context))
    context.emit(
        TaskCompleted(
            task_id=result.task_id,
            status=status,
            output=output,
            checked=result.checked.outcome,
            headline=result.headline,
        )
    )
    messages: Messages = [*results_for_unanswered(state.messages)]
    if output != answer(state):
        messages.append(AIMessage(output, id=f"{result.task_id}{END}"))
    context.hand_over(state, result)
    return {"result": result, "messages": messages}


def task_status(state: State) -> Status:
    """Return the status of the whole task: with a plan, that of the phase that failed first."""
    status = _status_of_plan(state) if state.plan else work_status(state)
    return "failed" if status == "completed" and state.error else status


def output_text(state: State, status: Status, words: Words) -> str:
    """Return the answer of a completed task, which it always has; else what it ended with."""
    if status == "completed" or (status == "parked" and answer(state)):
        return answer(state)
    if status == "max_steps_exceeded":
        return words.headed("max_steps_exceeded", stopped_text(state))
    reason = state.error.message if state.error else words.unknown
    return words.ended.format(status=status, reason=reason)


def _status_of_plan(state: State) -> Status:
    parts = state.plan.phases if state.plan else ()
    if state.failure is None and all(phase.status == "completed" for phase in parts):
        return "completed"
    fallen = phases.first_failed(state.plan) if state.plan else None
    if state.failure and (fallen is None or state.failure.code == "script_mismatch"):
        return work_status(state)
    return fallen.outcome if fallen and fallen.outcome else "failed"


async def _weakest_confinement(
    state: State, context: Context
) -> tuple[str | None, tuple[str, ...]]:
    """Return the weakest level that commands ran at, and what it leaves open; None if none ran."""
    checks = [c for each in _verifications(state) for c in each.checks if not c.by_judge]
    ran = [(check.sandbox, check.not_covered) for check in checks]
    of_task = (m for m in state.messages if str(m.id).startswith(f"{state.task_id}:"))
    calls = (m for m in of_task if isinstance(m, ToolMessage) and m.name in _COMMANDS)
    if state.task and state.task.workspace and any(m.status == "success" for m in calls):
        with suppress(SandboxUnavailable):  # then no call has run any
            opened = await context.open_sandbox()
            ran.append((opened.level, opened.not_covered))
    strength = {str(level): number for level, number in STRENGTH.items()}
    return min(ran, key=lambda each: strength.get(each[0], 0), default=(None, ()))


def _verifications(state: State) -> list[Verification]:
    parts = state.plan.phases if state.plan else ()
    checked = [*(phase.verification for phase in parts), state.verification]
    return [each for each in checked if each]


def _notes(state: State) -> tuple[str, ...]:
    notes: list[str] = []
    for each in _verifications(state):
        notes += [each.note, *(f"{c.command}: {c.note}" for c in each.checks if c.note)]
    return tuple(dict.fromkeys(note for note in notes if note))
