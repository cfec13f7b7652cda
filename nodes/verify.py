"""Check the work by running the workspace's own checks."""

from langchain_core.messages import HumanMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import VerificationCompleted, VerificationStarted
from daruma.state.failure import Code, Failure
from daruma.state.recording import record_step
from daruma.state.verification import Verification, excerpt
from daruma.tools.commands.checks import recognised_commands, run_checks
from daruma.tools.commands.command_event import command_run
from daruma.tools.context import Context
from daruma.tools.errors import FileUnavailable, ToolError
from daruma.tools.sandbox.level import SandboxUnavailable
from daruma.tools.snapshots.around import around
from daruma.tools.snapshots.outcome import SnapshotUnavailable


async def verify(state: State, context: Context) -> Update:
    """Run the checks once. A red result is told to the model as a short excerpt (VE-03)."""
    at = context.now()
    try:
        verification = await _check(state, context)
    except (ToolError, SandboxUnavailable, SnapshotUnavailable, OSError) as error:
        context.emit(VerificationCompleted(passed=False, summary=str(error)))
        failure = Failure(code=_code(error), node="verify", message=str(error))
        step = record_step(state, "verify", at=at, seconds=context.now() - at, ok=False)
        return {"failure": failure, "steps": step}
    context.emit(VerificationCompleted(passed=verification.passed, summary=verification.summary))
    return {
        "verification": verification,
        "origin": None,
        "messages": [] if verification.passed else [_report(state, verification)],
        "steps": record_step(
            state, "verify", at=at, seconds=context.now() - at, ok=verification.passed
        ),
    }


async def _check(state: State, context: Context) -> Verification:
    workspace = state.task.workspace if state.task else None
    if workspace is None:
        return Verification(note="nothing to verify: the task has no workspace")
    timeout = context.settings.verification.timeout
    opened = (await context.surroundings(workspace)).needs_workspace()
    commands = (*await recognised_commands(opened.root), *declared(state, context))
    commands = tuple(dict.fromkeys(commands))
    context.emit(VerificationStarted(commands=commands))
    checks = []
    if commands:
        sandbox = await context.open_sandbox()
        async with around(context.snapshots(workspace), "verification"):
            checks = await run_checks(commands, opened.root, timeout, sandbox)
    for check in checks:
        context.emit(command_run("verification", check))
    note = "" if checks else "nothing to verify: no checks are known for this workspace"
    return Verification(checks=tuple(checks), note=note)


def _code(error: Exception) -> Code:
    if isinstance(error, SandboxUnavailable):
        return "sandbox_violation"
    gone = isinstance(error, FileUnavailable | SnapshotUnavailable | OSError)
    return "workspace_conflict" if gone else "verification_failed"


def declared(state: State, context: Context) -> tuple[str, ...]:
    """Return the commands that the settings and the current phase declare."""
    phase = state.plan.phase(state.plan.current) if state.plan else None
    own = (phase.validation_command,) if phase and phase.validation_command else ()
    return (*context.settings.verification.commands, *own)


def _report(state: State, verification: Verification) -> HumanMessage:
    number = budget.spent(state.steps, "verify")
    text = f"Verification failed. What the checks said:\n\n{excerpt(verification)}"
    return HumanMessage(text, id=f"{state.task_id}:verification:{number}")
