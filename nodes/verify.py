"""Check the work by running the workspace's own checks, and by a judge where there is a rubric."""

from dataclasses import replace
from functools import partial

from langchain_core.messages import HumanMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import VerificationCompleted
from daruma.state.failure import Code, Failure
from daruma.state.outcome import rubric_of
from daruma.state.steps import Step
from daruma.state.verification import excerpt
from daruma.tools.context import (
    Context,
    begin_step,
    budget_exceeded,
    out_of_steps,
    receive_before_end,
)
from daruma.tools.errors import FileUnavailable, ToolError
from daruma.tools.judge import NotJudged, with_judgement
from daruma.tools.sandbox import SandboxUnavailable
from daruma.tools.snapshots import SnapshotUnavailable
from daruma.tools.verification import run_all_checks, verification_completed


async def verify(state: State, context: Context) -> Update:
    """Run the checks once (VE-01). A red result is told to the model as an excerpt (VE-03).

    Where a person has said something meanwhile, the model is asked first (FA-14).
    Where there is a rubric and they are not red, a judge is asked, who takes their place (VE-11).
    """
    spent = budget_exceeded(state, "verify", context)
    if early := spent or await receive_before_end(state, context):
        return early
    record = begin_step(state, "verify", context)
    asked: list[Step] = []
    check = partial(run_all_checks, state, context)
    check = partial(with_judgement, state, context, rubric_of(state), check, asked)
    try:
        verification = await context.hooks.around_checks(check)
    except NotJudged as error:
        context.emit(verification_completed(error.found))
        steps = [*asked, *record(ok=False, verification=error.found)]
        return {"verification": error.found, "failure": error.failure, "steps": steps}
    except (ToolError, SandboxUnavailable, SnapshotUnavailable, OSError) as error:
        context.emit(VerificationCompleted(passed=False, summary=str(error)))
        gone = isinstance(error, FileUnavailable | SnapshotUnavailable | OSError)
        code: Code = "workspace_conflict" if gone else "verification_failed"
        if isinstance(error, SandboxUnavailable):
            code = "sandbox_violation"
        failure = Failure(code=code, node="verify", message=str(error))
        return {"failure": failure, "steps": [*asked, *record(ok=False)]}
    context.emit(verification_completed(verification))
    steps = [*asked, *record(ok=verification.passed, verification=verification)]
    update: Update = {"verification": verification, "origin": None, "steps": steps}
    if verification.passed:
        return update
    text = f"Verification failed. What the checks said:\n\n{excerpt(verification)}"
    message_id = f"{state.task_id}:verification:{budget.on_thread(state, 'verify')}"
    update["messages"] = [HumanMessage(text, id=message_id)]
    if budget.can_go_on(replace(state, steps=[*state.steps, *steps])):
        return update
    return update | (out_of_steps(state, "verify", context) or {})
