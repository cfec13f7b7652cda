"""The tools that ship with Daruma. All of them work in the task's workspace."""

from functools import partial

from pydantic import BaseModel, ConfigDict

from daruma.state.reference import READER
from daruma.state.verification import Verification, excerpt
from daruma.tools.commands.checks import recognised_commands, run_checks
from daruma.tools.commands.command_event import command_run
from daruma.tools.commands.live_output import live_output
from daruma.tools.editor_args import EditorArgs
from daruma.tools.read_output import ReadOutputArgs, read_output
from daruma.tools.run_command import RunCommandArgs, run_command
from daruma.tools.search import SearchArgs, search
from daruma.tools.shipped_tool import shipped_tool
from daruma.tools.str_replace_editor import str_replace_editor
from daruma.tools.tool import Surroundings, Tool


class RunTestsArgs(BaseModel):
    """Run the workspace's own checks (its tests and linters) and show what fails.

    This is for looking; the final verification runs in any case and is not replaced by it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


async def _edit(args: EditorArgs, at: Surroundings) -> str:
    return await str_replace_editor(args, at.needs_workspace(), at.needs_history())


async def _search(args: SearchArgs, at: Surroundings) -> str:
    return await search(args, at.needs_workspace())


async def _run_command(args: RunCommandArgs, at: Surroundings) -> str:
    workspace, sandbox = at.needs_workspace(), await at.sandbox()
    return await run_command(args, workspace, at.timeout, sandbox, at.emit, at.call_id)


async def _run_tests(_: RunTestsArgs, at: Surroundings) -> str:
    root = at.needs_workspace().root
    commands = await recognised_commands(root)
    live = partial(live_output, at.emit, "tool", call_id=at.call_id)
    sandbox = await at.sandbox() if commands else None
    checks = await run_checks(commands, root, at.timeout, sandbox, live) if sandbox else []
    for check in checks:
        at.emit(command_run("tool", check))
    verification = Verification(checks=tuple(checks))
    return f"{verification.summary}\n\n{excerpt(verification)}".strip()


async def _read_output(args: ReadOutputArgs, at: Surroundings) -> str:
    return await read_output(args, at.outputs)


BUILTIN_TOOLS: tuple[Tool, ...] = (
    shipped_tool("str_replace_editor", EditorArgs, "workspace", _edit),
    shipped_tool("search", SearchArgs, "none", _search),
    shipped_tool("run_command", RunCommandArgs, "workspace", _run_command),
    shipped_tool("run_tests", RunTestsArgs, "workspace", _run_tests),
)

READ_OUTPUT = shipped_tool(READER, ReadOutputArgs, "none", _read_output)
"""Shown where there is something to read, with or without a workspace."""
