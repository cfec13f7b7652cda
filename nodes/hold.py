"""Hold the thread after a failed rollback, until a person says what to do (RO-03)."""

from dataclasses import replace
from typing import Final

from daruma.state.budget import record_step
from daruma.state.channels import State, Update
from daruma.state.events import RollbackDecided, task_started
from daruma.state.interrupts import Answer, Question, ask_person
from daruma.state.plan import Phase, Plan
from daruma.tools.context import Context
from daruma.tools.rollback import start_of, write_savepoint
from daruma.tools.verification import with_changed_tests

# --- What can become of a thread whose rollback failed: the question, and each of its answers.

RETRY: Final = "retry"
RESTORE: Final = "restore"
KEEP: Final = "keep"

WAYS: Final = {
    RETRY: "retry: roll the phase back once more",
    RESTORE: "restore: put all files back to the snapshot from before the phase",
    KEEP: "keep: go on from the files as they are now",
}


async def _apply_decision(state: State, way: str, context: Context) -> Update:
    """Take up the task again, in one of the ``WAYS``."""
    plan, phase = _plan_and_phase(state)
    if state.task:
        context.emit(task_started(state.task))
    context.emit(RollbackDecided(phase_id=phase.id, decision=way))
    update: Update = {
        "error": None,
        "steps": record_step(state, "consult", at=context.now(), signature=f"hold:{way}"),
    }
    if way == RESTORE:
        restored = replace(phase, rollback="snapshot", rollback_command=None)
        every = (restored if each.id == phase.id else each for each in plan.phases)
        update["plan"] = replace(plan, phases=tuple(every))
    elif way == KEEP:
        note = f"a person kept the files as the failed rollback of {phase.id!r} had left them"
        written = await write_savepoint(state.task, "done", context, phase_id=phase.id, note=note)
        update |= {"failure": None, "savepoints": written.savepoints}
    return update


def question_of(state: State) -> Question:
    """Build the question: what failed, and the ways to go on."""
    _, phase = _plan_and_phase(state)
    start = start_of(state, phase.id)
    ways = [way for way in WAYS if way != RESTORE or (start and start.snapshot)]
    failure = state.failure.message if state.failure else ""
    return Question(
        type="question",
        kind="rollback",
        id=f"{state.task_id}:hold:{phase.id}:{len(state.steps)}",
        question=f"rollback_failed: {failure}. What now?",
        context=with_changed_tests("\n".join(WAYS[way] for way in ways), state),
        deadline=None,
        options=ways,
    )


def _plan_and_phase(state: State) -> tuple[Plan, Phase]:
    phase = state.plan.phase(state.plan.current) if state.plan else None
    if state.plan is None or phase is None:
        raise LookupError("there is no phase whose rollback failed")
    return state.plan, phase


# --- Hold the thread after a failed rollback, until a person says what to do (RO-03).


async def hold(state: State, context: Context) -> Update:
    """Ask what is to become of what the rollback left; nothing is built on it before."""
    question = question_of(state)
    reply: Answer = ask_person(question, context.now(), context.emit)
    return await _apply_decision(state, reply.answer, context)
