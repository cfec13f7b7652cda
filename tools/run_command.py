"""The tool that runs a shell command in the workspace and tells the model how it went."""

import signal
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from daruma.state.events import Event, unheard
from daruma.tools.commands.command import CommandResult
from daruma.tools.commands.command_event import command_run
from daruma.tools.commands.live_output import live_output
from daruma.tools.files.workspace import Workspace
from daruma.tools.sandbox.sandbox import Sandbox
from daruma.tools.sandbox.told import hint, killed_for

LONGEST: Final = 600.0
"""Seconds."""


class RunCommandArgs(BaseModel):
    """Run a shell command in the workspace: tests, linters, builds, git.

    It gets no input and must end by itself: everything it started is killed when it ends or when
    its time is over. Long output is shown with its middle left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str = Field(min_length=1, description="Text for /bin/sh, for example 'pytest -x -q'.")
    timeout: float | None = Field(
        default=None, gt=0, le=LONGEST, description="Seconds after which it is ended."
    )
    cwd: str | None = Field(
        default=None, description="Directory to run in, relative to the workspace's root."
    )


async def run_command(
    args: RunCommandArgs,
    workspace: Workspace,
    timeout_default: float,
    sandbox: Sandbox,
    emit: Callable[[Event], None] = unheard,
    call_id: str = "",
) -> str:
    """Run the command, for at most `timeout_default` seconds if it names no time. Raises ToolError.

    A command that fails is an outcome to tell, not an error.
    """
    cwd = await workspace.directory(args.cwd or ".")
    seconds = args.timeout if args.timeout is not None else timeout_default
    root = workspace.root
    live = live_output(emit, "tool", args.command, call_id)
    result = await sandbox.run(args.command, workspace=root, cwd=cwd, timeout=seconds, live=live)
    emit(command_run("tool", result))
    return _told(result)


def _told(result: CommandResult) -> str:
    parts = [_outcome(result)]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text:
            parts.append(f"{name}:\n{text.rstrip()}")
    if not result.stdout and not result.stderr:
        parts.append("(no output)")
    if advice := hint(result):
        parts.append(advice)
    return "\n".join(parts)


def _outcome(result: CommandResult) -> str:
    if result.timed_out:
        return f"timed out after {result.seconds:.1f} s and was killed, with all it started"
    if why := killed_for(result):
        return f"sandbox_violation: {why}"
    if result.exit_code is None:
        return "stopped"
    if result.exit_code < 0:
        return (
            f"killed by signal {-result.exit_code} ({_signal_name(-result.exit_code) or 'no name'})"
        )
    signalled = _signal_name(result.exit_code - 128) if result.exit_code > 128 else ""
    return f"exit code: {result.exit_code}" + (f" (128 + {signalled})" if signalled else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
