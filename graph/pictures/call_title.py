"""A tool call on one line, and an edit as the difference that it makes."""

import json
from collections.abc import Mapping
from difflib import unified_diff
from itertools import islice
from typing import Any, Final

MOST_LINES: Final = 400
"""Lines of a text that are compared; comparing takes time with their square."""


def call_title(tool: str, args: Mapping[str, Any]) -> str:
    """Return ``view bill.py``, ``$ pytest -x`` or a tool's name with its short arguments."""
    if tool == "run_command":
        return f"$ {args.get('command', '')}"
    if tool == "str_replace_editor":
        return f"{args.get('command', 'edit')} {args.get('path', '')}".strip()
    values = [_text(value) for value in args.values()]
    return " ".join([tool, *(text for text in values if len(text) <= 80 and "\n" not in text)])


def arguments_text(args: Mapping[str, Any]) -> str:
    """Return arguments as lines, texts as they are; an editor's own texts stand in its diff."""
    shown = {name: value for name, value in args.items() if name not in _IN_DIFF}
    return "\n".join(f"{name}: {_text(value)}" for name, value in shown.items())


def edit_diff(args: Mapping[str, Any]) -> str:
    """Return what an edit takes away and puts there as a unified diff; empty for other calls.

    It is made of the call's own texts: line numbers count within them, not within the file.
    """
    old, new = args.get("old_str"), args.get("new_str", args.get("file_text"))
    if not isinstance(old, str) and not isinstance(new, str):
        return ""
    before, after = (_lines(text) if isinstance(text, str) else [] for text in (old, new))
    path = str(args.get("path") or "file")
    if max(len(before), len(after)) > MOST_LINES:
        made = _replaced(path, before, after)
    else:
        made = [*unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="")]
    return "\n".join(made)


_IN_DIFF: Final = frozenset({"old_str", "new_str", "file_text"})


def _lines(text: str) -> list[str]:
    return text.splitlines()


def _replaced(path: str, before: list[str], after: list[str]) -> list[str]:
    cut = [f"-{line}" for line in islice(before, MOST_LINES)]
    put = [f"+{line}" for line in islice(after, MOST_LINES)]
    left = len(before) + len(after) - len(cut) - len(put)
    more = [f" … {left} more lines"] if left else []
    sizes = f"@@ -1,{len(before)} +1,{len(after)} @@"
    return [f"--- a/{path}", f"+++ b/{path}", sizes, *cut, *put, *more]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
