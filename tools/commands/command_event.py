"""Telling of a command that the agent ran for itself: each run of one is audited (RO-04)."""

from daruma.state.events import CommandRun
from daruma.state.verification import Check
from daruma.tools.commands.command import CommandResult


def command_run(purpose: str, result: CommandResult | Check) -> CommandRun:
    """Build the event of a command that has ended."""
    return CommandRun(
        purpose=purpose,
        command=result.command,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        seconds=result.seconds,
        sandbox=result.sandbox,
        not_covered=result.not_covered,
        stopped_by=result.stopped_by,
        passed=result.passed,
        note=result.note if isinstance(result, Check) else "",
    )
