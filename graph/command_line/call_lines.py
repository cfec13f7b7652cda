"""A tool call as people read it: what it does to what, and what an edit changes."""

import json
from collections.abc import Mapping
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.printable import beginning, one_line

_SHOWN = 6


def call_title(tool: str, args: Mapping[str, Any]) -> str:
    """Return ``view bill.py``, ``$ pytest -x`` or a tool's name with its short arguments."""
    if tool == "run_command":
        return f"$ {args.get('command', '')}"
    if tool == "str_replace_editor":
        return f"{args.get('command', 'edit')} {args.get('path', '')}".strip()
    values = (_short(value) for value in args.values())
    return " ".join([tool, *(value for value in values if len(value) <= 80)])


def change_lines(args: Mapping[str, Any]) -> list[Line]:
    """Return what an edit takes away and what it puts there, by their beginnings."""
    gone, new = args.get("old_str"), args.get("new_str")
    minus = [Line("minus", beginning(gone, _SHOWN))] if isinstance(gone, str) else []
    plus = [Line("plus", beginning(new, _SHOWN))] if isinstance(new, str) else []
    return minus + plus


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return one_line(text, 1000)
