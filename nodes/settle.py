"""Close a phase: its outcome, and what that means for those that depend on it."""

from daruma.state import plan as phases
from daruma.state.channels import State, Update
from daruma.state.events import PhaseCompleted, phase_failed, place_in
from daruma.state.outcome import LONGEST_ANSWER, answer, last_answer, work_failure, work_status
from daruma.tools.context import Context, receive_before_end
from daruma.tools.rollback import write_savepoint


async def settle(state: State, context: Context) -> Update:
    """Mark the current phase as ended, and write a savepoint, unless it is to be undone first.

    A task without phases has nothing to close. Work that is completed goes on where a person has
    said something meanwhile (FA-14).
    """
    status = work_status(state)
    if status == "completed" and (told := await receive_before_end(state, context)):
        return told
    if state.plan is None or state.plan.current is None:
        return {}
    failure = work_failure(state, status)
    said = (answer(state) or last_answer(state))[:LONGEST_ANSWER]
    closed = phases.close(state.plan, state.plan.current, status, failure, state.verification, said)
    if failure is None:
        context.emit(PhaseCompleted(**place_in(closed)))
    else:
        context.emit(phase_failed(state.plan, closed))
    ended = closed.phase(closed.current)
    update: Update = {"plan": closed, "failure": None, "origin": None, "calls": ()}
    helps = state.task.helps if state.task else ""
    if ended and helps != "reads" and not phases.to_undo(ended):  # who reads leaves nothing behind
        written = await write_savepoint(state.task, "done", context, phase_id=ended.id)
        update["savepoints"] = written.savepoints
    return update
