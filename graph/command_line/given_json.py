"""What is given as JSON on the command line: a plan in a file, or the arguments of a call."""

import json
from pathlib import Path
from typing import Any

from daruma.state.errors import DarumaError


class AnswerRefused(DarumaError):
    """Raised for an answer that fits no open question; the questions stay open."""


def plan_in(file: Path) -> dict[str, Any]:
    """Return the plan in a file. Raises :class:`AnswerRefused`."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerRefused(f"the plan {file} can not be read: {error}") from None
    return _object(text, f"the plan {file}", "an object with phases")


def args_in(text: str) -> dict[str, Any]:
    """Return the new arguments of a call. Raises :class:`AnswerRefused`."""
    return _object(text, "--args", 'an object such as {"command": "ls"}')


def _object(text: str, what: str, form: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise AnswerRefused(f"{what} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AnswerRefused(f"{what} is not {form}")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number that JSON knows")
