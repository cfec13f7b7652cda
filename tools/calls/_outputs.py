"""The tool that reads on in an output of which only the two ends were shown."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from daruma.state.text import READER
from daruma.tools.calls._results import Outputs
from daruma.tools.calls._tool import Surroundings, shipped_tool
from daruma.tools.errors import ToolError

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


async def _read_output(args: ReadOutputArgs, at: Surroundings) -> str:
    return await read_output(args, at.outputs)


READ_OUTPUT = shipped_tool(READER, ReadOutputArgs, "none", _read_output)
"""Shown where there is something to read, with or without a workspace."""
