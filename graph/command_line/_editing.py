"""Values and texts that a person edits: JSON, an editor, drafts that are kept."""

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from daruma.graph.command_line._output import Line, Paper, Read, choice, in_foreground
from daruma.state.errors import DarumaError
from daruma.tools.commands import find_program

# --- What is given as JSON on the command line: a plan in a file, or the arguments of a call.


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


# --- Having a person edit a text in an editor of their own.

Edit = Callable[[str, str], str]
"""Takes a text and the ending of its file's name, and returns the text as it was left."""


def edited(text: str, ending: str) -> str:
    """Open a text in ``$VISUAL`` or ``$EDITOR``, else in an editor that is there; return it after.

    Raises :class:`AnswerRefused` without an editor; where one fails, it names the file that holds
    what was written.
    """
    command = _editor()
    folder = Path(tempfile.mkdtemp(prefix="daruma-edit-"))
    file = folder / f"edit{ending}"
    file.write_text(text, encoding="utf-8", newline="")
    try:
        code = in_foreground([*command, str(file)], folder=folder)
        after = file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AnswerRefused(f"{command[0]}: {error}; what was written is in {file}") from None
    if code:
        raise AnswerRefused(f"{command[0]} ended with {code}; what was written is in {file}")
    shutil.rmtree(folder, ignore_errors=True)
    return after.replace("\r\n", "\n")


def _editor() -> list[str]:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        if words := shlex.split(named or ""):
            return words
    except ValueError as error:
        raise AnswerRefused(f"EDITOR can not be read ({error}): {named}") from None
    for name in ("nano", "vi"):
        if found := find_program(name):
            return [found]
    raise AnswerRefused("there is no editor: name one in EDITOR")


# --- Texts that a person works on in an editor, kept until they are of use: nothing is lost.

T = TypeVar("T")


@dataclass
class Drafts:
    """What was written last, by what it is about; also where it could not be used."""

    edit: Edit = edited
    texts: dict[str, str] = field(default_factory=dict)

    def written(
        self, about: str, text: str, check: Callable[[str], T], paper: Paper, read: Read
    ) -> T | None:
        """Have a text edited until ``check`` takes it; None where it is left as it was.

        What ``check`` raises (a :class:`~daruma.state.errors.DarumaError`) is told, and the text
        can be edited on; it is there again when the same thing is edited later.
        """
        before = self.texts.get(about, text)
        while True:
            try:
                after = self.edit(before, ".yaml")
                if after == text or not after.strip():
                    paper.put(Line("note", "nothing was changed"))
                    return None
                before = self.texts[about] = after
                return check(after)
            except DarumaError as error:
                paper.put(Line("bad", str(error)))
            offered = {"e": "[e]dit on", "b": "[b]ack (what you wrote is kept)"}
            if choice(offered, read) == "b":
                return None
