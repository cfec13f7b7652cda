"""Undo a failed phase as it asks for, if its validation says that this is needed."""

from daruma.state.channels import State, Update
from daruma.state.errors import DarumaError
from daruma.state.events import PhaseRollbackCompleted, PhaseRollbackFailed, PhaseRollbackStarted
from daruma.state.failure import Failure
from daruma.state.plan import Phase, with_runs
from daruma.tools.calls import commands_refusal
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.rollback import RollbackFailed, RolledBack, roll_back, validate, write_savepoint


async def rollback(state: State, context: Context) -> Update:
    """Run the validation command; only if that fails, roll back; then write a savepoint (RO-02).

    After a rollback that failed none is written: nothing may be built on what it left (RO-03).
    """
    phase = state.plan.phase(state.plan.current) if state.plan else None
    if state.plan is None or phase is None or phase.status != "failed":
        raise LookupError("there is no failed phase to roll back")
    undone, validated = RolledBack(), None
    commands = [each for each in (phase.validation_command, phase.rollback_command) if each]
    try:
        at = await context.surroundings(None)
        if refused := await commands_refusal("rollback", commands, state, at):
            raise RollbackFailed(refused)
        validated = await validate(phase, state, context)
        valid = validated is not None and validated.passed
        if not valid and (phase.rollback_command or phase.rollback):
            undone = await _roll_back_phase(phase, state, context)
    except (ToolError, DarumaError, OSError) as error:
        message = f"the rollback of phase {phase.id!r} failed: {error}"
        run, undo = (error.run, error.undo) if isinstance(error, RollbackFailed) else (None, None)
        kept = f"what was rolled back is kept as {undo}" if undo else ""
        failure = Failure(code="rollback_failed", node="rollback", message=message, detail=kept)
        return {
            "failure": failure,
            "plan": with_runs(state.plan, phase.id, validated, run),
        }
    written = await write_savepoint(
        state.task, "done", context, phase_id=phase.id, note=undone.note, undo=undone.undo
    )
    plan = with_runs(state.plan, phase.id, validated, undone.run)
    return {"savepoints": written.savepoints, "failure": None, "plan": plan}


async def _roll_back_phase(phase: Phase, state: State, context: Context) -> RolledBack:
    context.emit(
        PhaseRollbackStarted(phase_id=phase.id, command=phase.rollback_command or "snapshot")
    )
    try:
        undone = await roll_back(phase, state, context)
    except Exception as error:  # a bug too: what was begun is told as ended (PL-04)
        undo = error.undo if isinstance(error, RollbackFailed) else None
        context.emit(PhaseRollbackFailed(phase_id=phase.id, reason=str(error), undo=undo))
        raise
    context.emit(
        PhaseRollbackCompleted(
            phase_id=phase.id, exact=undone.exact, left=undone.left, undo=undone.undo
        )
    )
    return undone
