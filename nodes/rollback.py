"""Undo a failed phase by its own commands, if its validation says that this is needed."""

from daruma.state.channels import State, Update
from daruma.state.events import (
    PhaseRollbackCompleted,
    PhaseRollbackFailed,
    PhaseRollbackStarted,
)
from daruma.state.failure import Failure
from daruma.state.plan import Phase
from daruma.tools.commands.command import CommandResult
from daruma.tools.commands.command_event import command_run
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.sandbox.level import SandboxUnavailable


async def rollback(state: State, context: Context) -> Update:
    """Run the validation command; only if that fails, the rollback command (RO-02)."""
    phase = state.plan.phase(state.plan.current) if state.plan else None
    if phase is None or phase.rollback_command is None:
        raise LookupError("there is no failed phase with a rollback command")
    try:
        if await _still_valid(phase, state, context):
            return {}
        return await _roll_back(phase, phase.rollback_command, state, context)
    except (ToolError, SandboxUnavailable) as error:
        return _failed(phase, str(error), context)


async def _still_valid(phase: Phase, state: State, context: Context) -> bool:
    if phase.validation_command is None:
        return False
    return (await _run("validation", phase.validation_command, state, context)).passed


async def _roll_back(phase: Phase, command: str, state: State, context: Context) -> Update:
    context.emit(PhaseRollbackStarted(phase_id=phase.id, command=command))
    result = await _run("rollback", command, state, context)
    if result.passed:
        context.emit(PhaseRollbackCompleted(phase_id=phase.id))
        return {}
    how = "timed out" if result.timed_out else f"exit {result.exit_code}"
    said = (result.stderr or result.stdout).strip()[-500:]
    return _failed(phase, f"{command!r} failed ({how}): {said}", context)


async def _run(purpose: str, command: str, state: State, context: Context) -> CommandResult:
    workspace = state.task.workspace if state.task else None
    opened = (await context.surroundings(workspace)).needs_workspace()
    timeout = context.settings.rollback.default_timeout
    sandbox = await context.open_sandbox()
    result = await sandbox.run(command, workspace=opened.root, timeout=timeout)
    context.emit(command_run(purpose, result))
    return result


def _failed(phase: Phase, reason: str, context: Context) -> Update:
    context.emit(PhaseRollbackFailed(phase_id=phase.id, reason=reason))
    message = f"the rollback of phase {phase.id!r} failed: {reason}"
    return {"failure": Failure(code="rollback_failed", node="rollback", message=message)}
