"""Having a person edit a text in an editor of their own."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from daruma.graph.command_line.foreground import in_foreground
from daruma.graph.command_line.given_json import AnswerRefused

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
        code = in_foreground([*command, str(file)])
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
        if found := shutil.which(name):
            return [found]
    raise AnswerRefused("there is no editor: name one in EDITOR")
