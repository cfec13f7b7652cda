"""What an edit that waits for a yes would change in its file, as the file is now."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from daruma.graph.command_line.approval_lines import approval_lines
from daruma.graph.command_line.paper import Line, Mark
from daruma.state.text import revealed_line
from daruma.tools.errors import ToolError
from daruma.tools.files.beneath import FilesBeneath
from daruma.tools.files.edits import insert_after, replace_once
from daruma.tools.files.paths import TextFile

EDITOR: Final = "str_replace_editor"
AROUND: Final = 3
"""Lines that are shown before and after a change, as diffs do."""

_MARKS: Final[Mapping[str, Mark]] = {"+": "plus", "-": "minus", "@": "note"}

_CHANGES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], str]]] = {
    "str_replace": lambda now, args: replace_once(now, args["old_str"], args["new_str"]).text,
    "insert_at_line": lambda now, args: (
        insert_after(now, args["insert_line"], args["insert_text"]).text
    ),
}


def shown_approval(approval: Mapping[str, Any]) -> list[Line]:
    """Return an approval with what it would change in a file that it edits."""
    return [*approval_lines(approval), *edit_preview(approval)]


def edit_preview(approval: Mapping[str, Any]) -> list[Line]:
    """Return the diff of a call of the editor; nothing for other calls, and where nobody can tell.

    It reads the file beneath the approval's folder. A file that can not be edited as the call says
    is no error: the reason is told.
    """
    args, folder = approval["args"], approval.get("cwd")
    if approval["tool"] != EDITOR or not folder:
        return []
    try:
        before, after = _texts(Path(folder), args)
    except (ToolError, OSError) as error:
        return [Line("bad", f"as the file is now, this would be refused: {error}")]
    except (KeyError, TypeError, AttributeError):  # the tool itself says what is wrong with them
        return []
    return [*diff_lines(before, after)]


def _texts(folder: Path, args: Mapping[str, Any]) -> tuple[str, str]:
    """Return a file's text before and after. Raises KeyError for a command that changes none."""
    if args["command"] == "create":
        return "", args["file_text"]
    change = _CHANGES[args["command"]]
    now = TextFile.of(FilesBeneath(folder).read(args["path"]), args["path"]).text
    return now, change(now, args)


def diff_lines(before: str, after: str) -> Iterator[Line]:
    """Yield a unified diff; what hides in its lines is spelled, a line end of ``\\r\\n`` too."""
    if before.replace("\r\n", "\n") == after.replace("\r\n", "\n"):
        yield Line("note", "this changes nothing")
        return
    old, new = before.split("\n"), after.split("\n")
    for text in [*difflib.unified_diff(old, new, n=AROUND, lineterm="")][2:]:
        shown = revealed_line(text[1:].replace("\t", "    "))
        if text.startswith("@"):
            yield Line("note", text.strip("@ "), "what would change")
        else:
            yield Line(_MARKS.get(text[0], "same"), shown)
