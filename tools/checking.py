"""Running the checks that say whether the work is done."""

from functools import partial

from daruma.state.channels import State
from daruma.state.events import VerificationStarted
from daruma.state.verification import Verification
from daruma.tools.commands.checks import recognised_commands, run_checks
from daruma.tools.commands.command_event import command_run
from daruma.tools.commands.live_output import live_output
from daruma.tools.context import Context
from daruma.tools.snapshots.around import around


async def checked(state: State, context: Context) -> Verification:
    """Run what is recognised in the workspace, and what settings and the current phase declare.

    Raises :class:`~daruma.tools.errors.ToolError`, OSError,
    :class:`~daruma.tools.sandbox.level.SandboxUnavailable` and
    :class:`~daruma.tools.snapshots.outcome.SnapshotUnavailable`.
    """
    workspace = state.task.workspace if state.task else None
    if workspace is None:
        return Verification(note="nothing to verify: the task has no workspace")
    timeout = context.settings.verification.timeout
    opened = (await context.surroundings(workspace)).needs_workspace()
    commands = (*await recognised_commands(opened.root), *declared(state, context))
    commands = tuple(dict.fromkeys(commands))
    context.emit(VerificationStarted(commands=commands))
    if not commands:
        return Verification(note="nothing to verify: no checks are known for this workspace")
    sandbox = await context.open_sandbox()
    async with around(context.snapshots(workspace), "verification"):
        live = partial(live_output, context.emit, "verification")
        checks = await run_checks(commands, opened.root, timeout, sandbox, live)
    for check in checks:
        context.emit(command_run("verification", check))
    return Verification(checks=tuple(checks))


def declared(state: State, context: Context) -> tuple[str, ...]:
    """Return the commands that the settings and the current phase declare."""
    phase = state.plan.phase(state.plan.current) if state.plan else None
    own = (phase.validation_command,) if phase and phase.validation_command else ()
    return (*context.settings.verification.commands, *own)
