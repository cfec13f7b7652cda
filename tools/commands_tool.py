"""The tools that run a shell command and that search in the workspace's files."""

import json
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

import daruma
from daruma.state.events import Event, unheard
from daruma.tools.calls import Surroundings, Tool, shipped_tool
from daruma.tools.commands import CommandResult, command_run, kill_reason, live_output, run_in_group
from daruma.tools.errors import CommandRefused, NotReadOnly, SandboxViolation, SearchRefused
from daruma.tools.files import Answer, Request, Workspace
from daruma.tools.sandbox import Sandbox, read_only_refusal, sandbox_hint

# --- The tool that runs a shell command in the workspace and tells the model how it went.

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
    write: bool = Field(
        default=False,
        description="Leave it out at first. True where a command that ran read-only has to write.",
    )


READ_ONLY: Final = (
    "ran read-only, without network, secrets and files of others; if that hid anything, call it "
    "again with write: true"
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

    A command that fails is an outcome to tell, not an error; one that the sandbox ended is an error
    with the code sandbox_violation (SA-02). Raises NotReadOnly for one whose result can not
    stand, as the sandbox is read-only.
    """
    cwd = await workspace.directory(args.cwd or ".")
    seconds = args.timeout if args.timeout is not None else timeout_default
    root, text = workspace.root, args.command
    live = live_output(emit, "tool", text, call_id)
    try:
        result = await sandbox.run(text, workspace=root, cwd=cwd, timeout=seconds, live=live)
    except CommandRefused as error:
        if sandbox.read_only:
            raise NotReadOnly(str(error)) from error
        raise
    if sandbox.read_only:
        result = replace(result, notes=(*result.notes, READ_ONLY))
    emit(command_run("tool", result))
    if sandbox.read_only and (refusal := read_only_refusal(result)):
        raise NotReadOnly(refusal)
    if why := kill_reason(result):
        raise SandboxViolation(f"sandbox_violation: {why}\n{_render_result(result)}")
    return _render_result(result)


def _render_result(result: CommandResult) -> str:
    parts = [_outcome(result)]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text:
            parts.append(f"{name}:\n{text.rstrip()}")
    if not result.stdout and not result.stderr:
        parts.append("(no output)")
    parts += [f"({note})" for note in result.notes]
    if advice := sandbox_hint(result):
        parts.append(advice)
    return "\n".join(parts)


def _outcome(result: CommandResult) -> str:
    if result.timed_out:
        return f"timed out after {result.seconds:.1f} s and was killed, with all it started"
    if result.exit_code is None:
        return "stopped"
    if result.exit_code < 0:
        number = -result.exit_code
        return f"killed by signal {number} ({_signal_name(number) or 'no name'})"
    signalled = _signal_name(result.exit_code - 128) if result.exit_code > 128 else ""
    return f"exit code: {result.exit_code}" + (f" (128 + {signalled})" if signalled else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


# --- The tool that finds text in files, or files by name, within a bounded time and answer.

MOST_FOUND: Final = 100
SECONDS: Final = 20.0
LONGEST_ANSWER: Final = 4 * 1024 * 1024
START: Final = (
    "import sys; sys.path.append(sys.argv[1]); from daruma.tools.files._beneath import main; main()"
)


class SearchArgs(BaseModel):
    """Search the workspace: text in files (pattern), or files by name (glob without a pattern).

    Shows `path:line: text` with whole paths, which can be used as they are. At most 100 results.
    Caches, `.git`, binary files and files over 4 MiB are left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str | None = Field(
        default=None,
        max_length=10_000,
        description="Python regular expression, line by line; (?i) at its start ignores case.",
    )
    literal: bool = Field(default=False, description="Take the pattern as plain text.")
    glob: str | None = Field(
        default=None,
        max_length=1_000,
        description="Only files that fit: '*.py' at any depth, 'src/**/test_*.py', '*.{ts,tsx}'.",
    )
    path: str = Field(default=".", description="Directory or file to search in.")


async def search(args: SearchArgs, workspace: Workspace, *, seconds: float = SECONDS) -> str:
    """Search and tell the model what was found. Raises ToolError; takes at most `seconds`."""
    if not args.pattern and not args.glob:
        raise SearchRefused("give a pattern to search for, or a glob to find files by name")
    pattern = re.escape(args.pattern) if args.literal and args.pattern else args.pattern
    request = Request(str(workspace.root), args.path, pattern or None, args.glob, MOST_FOUND)
    # Isolated and without site-packages: nothing in the workspace can be imported by mistake.
    home = str(Path(daruma.__file__).parents[1])
    argv = [sys.executable, "-I", "-S", "-c", START, home, json.dumps(asdict(request))]
    result = await run_in_group(argv, cwd=workspace.root, timeout=seconds, limit=LONGEST_ANSWER)
    answer = _answer(result, seconds)
    lines = answer.lines or ["nothing found"]
    if answer.cut:
        lines.append(f"[cut after {MOST_FOUND} results: narrow path, glob or pattern]")
    if answer.skipped:
        lines.append(f"[{answer.skipped} binary, oversized or unreadable files left out]")
    return "\n".join(lines)


def _answer(result: CommandResult, seconds: float) -> Answer:
    if result.timed_out:
        took = f"the search took over {seconds:g} s"
        raise SearchRefused(f"{took}: narrow path or glob, or simplify the pattern")
    if not result.passed:
        reason = (result.stderr.strip() or f"exit code {result.exit_code}").splitlines()[-1]
        raise SearchRefused(f"the search broke off: {reason}")
    answer = Answer(**json.loads(result.stdout))
    if answer.error is not None:
        raise SearchRefused(answer.error)
    return answer


# --- Both as they are given to the registry.


async def _run_command(args: RunCommandArgs, at: Surroundings) -> str:
    workspace = at.needs_workspace()
    sandbox = replace(await at.sandbox(), read_only=at.read_only)
    return await run_command(args, workspace, at.timeout, sandbox, at.emit, at.call_id)


COMMAND_TOOLS: Final[tuple[Tool, ...]] = (
    shipped_tool("search", SearchArgs, "none", lambda args, at: search(args, at.needs_workspace())),
    shipped_tool("run_command", RunCommandArgs, "workspace", _run_command),
)
