"""The shapes in which models write a tool call as a JSON object."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

NAMES: Final = ("name", "tool", "tool_name", "function")
ARGUMENTS: Final = ("arguments", "args", "parameters", "input", "tool_input")
MARKS: Final = frozenset({"id", "type", "call_id", "tool_call_id", "index"})
NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,127}")
HEAD: Final = re.compile(
    r"""[\s\[{]*(?:["']?(?:tool_calls|function)["']?\s*:[\s\[{]*)*"""
    r"""["']?(?:name|tool|tool_name|function)["']?\s*:\s*["']([A-Za-z_][\w.:/-]{0,127})["']\s*,\s*"""
    r"""["']?(?:arguments|args|parameters|input|tool_input)["']?\s*:\s*"""
)


@dataclass(frozen=True)
class WrittenCall:
    """A call as it was written: ``args`` is None where they can not be read, then see ``raw``."""

    name: str
    args: dict[str, Any] | None
    raw: str


def calls_in(value: Any) -> tuple[WrittenCall, ...]:
    """Return the calls that a JSON value is, wholly; () for a value that is anything else."""
    if isinstance(value, Mapping) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    items = value if isinstance(value, list) else [value]
    found = [_call(item) for item in items]
    whole = [each for each in found if each is not None]
    return tuple(whole) if len(whole) == len(found) else ()


def broken_call(text: str) -> WrittenCall | None:
    """Return the call that a text certainly begins, though it is no JSON; None if it is none.

    Its ``raw`` is what follows as arguments, without the brackets of the call around them.
    """
    head = HEAD.match(text[:2_000])
    if head is None or "{" not in head.group():
        return None
    raw = text[head.end() :].rstrip()
    for bracket in re.findall(r"[\[{]", head.group())[::-1]:
        raw = raw.removesuffix("}" if bracket == "{" else "]").rstrip()
    return WrittenCall(head.group(1), None, raw)


def _call(item: Any) -> WrittenCall | None:
    if not isinstance(item, Mapping):
        return None
    inner = item.get("function")
    if isinstance(inner, Mapping):
        return _call(inner) if item.keys() <= {"function"} | MARKS else None
    names = [key for key in NAMES if key in item]
    arguments = [key for key in ARGUMENTS if key in item]
    if (len(names), len(arguments)) != (1, 1) or item.keys() - {*names, *arguments} - MARKS:
        return None
    name = item[names[0]]
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        return None
    return _with_arguments(name, item[arguments[0]])


def _with_arguments(name: str, given: Any) -> WrittenCall | None:
    if given is None:
        return WrittenCall(name, {}, "")
    if isinstance(given, str):
        return _with_text(name, given)
    raw = json.dumps(given, ensure_ascii=False)
    return WrittenCall(name, dict(given) if isinstance(given, Mapping) else None, raw)


def _with_text(name: str, given: str) -> WrittenCall | None:
    """Return a call whose arguments are JSON text, None where they are plain words: it is data."""
    if given.strip() and not given.lstrip().startswith(("{", "```", '"', "'")):
        return None
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    return WrittenCall(name, value if isinstance(value, dict) else None, given)
