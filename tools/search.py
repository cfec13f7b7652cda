"""The tool that finds text in files, or files by name, within a bounded time and answer."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

import daruma
from daruma.tools.commands.command import CommandResult, run_in_group
from daruma.tools.errors import SearchRefused
from daruma.tools.files.workspace import Workspace
from daruma.tools.search_scan import Answer, Request

MOST_FOUND: Final = 100
SECONDS: Final = 20.0
LONGEST_ANSWER: Final = 4 * 1024 * 1024
START: Final = (
    "import sys; sys.path.append(sys.argv[1]); from daruma.tools.search_scan import main; main()"
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
    argv = [sys.executable, "-I", "-S", "-c", START, _package_home(), json.dumps(asdict(request))]
    result = await run_in_group(argv, cwd=workspace.root, timeout=seconds, limit=LONGEST_ANSWER)
    return _told(_answer(result, seconds))


def _package_home() -> str:
    return str(Path(daruma.__file__).parents[1])


def _answer(result: CommandResult, seconds: float) -> Answer:
    if result.timed_out:
        raise SearchRefused(
            f"the search took over {seconds:g} s: narrow path or glob, or simplify the pattern"
        )
    if not result.passed:
        reason = (result.stderr.strip() or f"exit code {result.exit_code}").splitlines()[-1]
        raise SearchRefused(f"the search broke off: {reason}")
    answer = Answer(**json.loads(result.stdout))
    if answer.error is not None:
        raise SearchRefused(answer.error)
    return answer


def _told(answer: Answer) -> str:
    lines = answer.lines or ["nothing found"]
    if answer.cut:
        lines.append(f"[cut after {MOST_FOUND} results: narrow path, glob or pattern]")
    if answer.skipped:
        lines.append(f"[{answer.skipped} binary, oversized or unreadable files left out]")
    return "\n".join(lines)
