"""The tools that ship with Daruma, and where each set of them is shown."""

from functools import partial
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from daruma.state.text import READER
from daruma.state.verification import Verification, excerpt
from daruma.tools.assistant import KEEPING, MAKING
from daruma.tools.calls.results import Outputs
from daruma.tools.calls.tool import Surroundings, Tool, shipped_tool
from daruma.tools.checks import recognised_commands
from daruma.tools.commands.command import command_run
from daruma.tools.commands.output import live_output
from daruma.tools.commands_tool import RunCommandArgs, SearchArgs, run_command, search
from daruma.tools.editor_tool import EditorArgs, str_replace_editor
from daruma.tools.errors import ToolError
from daruma.tools.knowledge.knowledge_tools import KNOWLEDGE_TOOLS
from daruma.tools.memory.memories import MEMORY_TOOLS
from daruma.tools.skills import SKILL_TOOLS

# --- The tool that reads on in an output of which only the two ends were shown.

MANY: Final = 50
"""Lines that are shown of those which hold a text."""

_LONGEST_LINE: Final = 200


class ReadOutputArgs(BaseModel):
    """Read the part of a long result that was left out, by the id that stands in its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(description="The id, as in: read_output shows them: id 0123456789abcdef")
    offset: int = Field(default=0, ge=0, description="Character to begin with, from 0.")
    length: int = Field(default=8000, ge=1, le=20_000, description="Characters to show.")
    find: str | None = Field(
        default=None,
        min_length=1,
        description="Show the lines after the offset that hold this text, in any case, instead.",
    )


async def read_output(args: ReadOutputArgs, outputs: Outputs) -> str:
    """Show a part, or the lines that hold a text and where each begins. Raises ToolError."""
    text = await outputs.read(args.id.strip())
    if text is None:
        raise ToolError(
            f"there is no output {args.id!r} of this thread: take the id from the line "
            "that says how many characters were left out"
        )
    if args.offset >= len(text):
        raise ToolError(f"the output has {len(text)} characters: nothing at {args.offset}")
    if args.find is not None:
        return _found(text, args.find, args.offset)
    end = min(len(text), args.offset + args.length)
    return f"[characters {args.offset} to {end} of {len(text)}]\n{text[args.offset : end]}"


def _found(text: str, wanted: str, offset: int) -> str:
    wanted = wanted.casefold()
    hits, at = list[str](), 0
    for line in text.splitlines(keepends=True):
        if at >= offset and wanted in line.casefold():
            if len(hits) == MANY:
                return "\n".join([*hits, f"[more from offset {at} on]"])
            hits.append(f"{at}: {line.rstrip()[:_LONGEST_LINE]}")
        at += len(line)
    return "\n".join(hits) or f"no line from offset {offset} on holds that"


# --- The tools that ship with Daruma. All of them work in the task's workspace.


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
    from daruma.tools.verification import run_checks  # it knows the context, which knows the tools

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


# --- The tools that ship beside those of the workspace, and where each set of them is shown.

TOOLSET_TOOLS: Final[tuple[Tool, ...]] = (
    *MEMORY_TOOLS,
    *SKILL_TOOLS,
    *MAKING,
    *KEEPING,
    *KNOWLEDGE_TOOLS,
)
"""An application's tool of the same name takes the place of one of these."""
