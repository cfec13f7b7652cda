"""The search itself, run as a process of its own: a regular expression can not be interrupted.

`python -c ... REQUEST`, where REQUEST is JSON; the answer is one JSON object on standard output.
Imports only what starts fast."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from daruma.tools.errors import ToolError
from daruma.tools.files._beneath import CACHES, FilesBeneath, walk
from daruma.tools.files._paths import Glob, TextFile

LONGEST_LINE: Final = 200


@dataclass(frozen=True, slots=True)
class Request:
    """What to look for; without `pattern`, for names only."""

    root: str
    path: str
    pattern: str | None
    glob: str | None
    most: int


@dataclass(slots=True)
class Answer:
    """What was found; `error` alone if the request can not be carried out."""

    lines: list[str] = field(default_factory=list)
    cut: bool = False
    skipped: int = 0
    error: str | None = None


def main() -> None:
    """Answer the request in the last argument."""
    request = Request(**json.loads(sys.argv[-1]))
    try:
        answer = scan(request)
    except re.error as error:
        answer = Answer(error=f"the pattern is no regular expression: {error}")
    except ToolError as error:
        answer = Answer(error=str(error))
    sys.stdout.write(json.dumps(asdict(answer)))


def scan(request: Request) -> Answer:
    """Go through the files. Raises re.error for the pattern and ToolError for the path."""
    files = FilesBeneath(Path(request.root))
    pattern = None if request.pattern is None else re.compile(request.pattern)
    answer = Answer()
    for path in _paths(files, request):
        found = iter([path]) if pattern is None else _matches(files, path, pattern, answer)
        for line in found:
            if len(answer.lines) == request.most:
                answer.cut = True
                return answer
            answer.lines.append(line)
    return answer


def _paths(files: FilesBeneath, request: Request) -> Iterator[str]:
    glob = Glob(request.glob) if request.glob else None
    if not files.is_directory(request.path):
        yield files.locate(request.path)
        return
    for entry in walk(files, request.path, skip=CACHES):
        if entry.kind == "file" and (glob is None or glob.matches(entry.path)):
            yield entry.path


def _matches(
    files: FilesBeneath, path: str, pattern: re.Pattern[str], answer: Answer
) -> Iterator[str]:
    try:
        text = TextFile.of(files.read(path), path).text
    except ToolError:
        answer.skipped += 1
        return
    for number, line in enumerate(text.split("\n"), 1):
        if match := pattern.search(line.removesuffix("\r")):
            yield f"{path}:{number}: {_excerpt(line.strip(), line, match.start())}"


def _excerpt(stripped: str, line: str, at: int) -> str:
    if len(stripped) <= LONGEST_LINE:
        return stripped
    start = max(0, min(at - LONGEST_LINE // 4, len(line) - LONGEST_LINE))
    end = start + LONGEST_LINE
    return "…" * (start > 0) + line[start:end].strip() + "…" * (end < len(line))
