"""Values and texts that a person gives or edits: JSON, YAML, an editor."""

import json
import math
import os
import re
import shlex
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from daruma.graph.command_line._output import Line, Paper, Read, choice
from daruma.graph.command_line._questions import AnswerRefused
from daruma.state.errors import DarumaError
from daruma.state.text import is_hidden, spell_character
from daruma.tools.commands import find_program, host_environment, run_program

# --- What is given as JSON on the command line: a plan in a file, or the arguments of a call.


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


# --- Values as YAML that a person can edit: nothing changes on the way there and back.

_KEPT: Final = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
_WIDTH: Final = 100


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # a value said twice is written twice
        return True


class _Loader(yaml.SafeLoader):
    """Reads what JSON knows: a date, or ``no``, is the text that it looks like."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(map(_hides, text)) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
_Loader.yaml_implicit_resolvers = {
    first: [each for each in known if each[0] not in _KEPT]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_KEPT[1], re.compile("^(?:true|false)$"), list("tf"))


def to_yaml(value: object) -> str:
    """Return a JSON-able value as YAML; what hides in its texts is spelled."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "".join(spell_character(char) if _hides(char) else char for char in text)


def _hides(char: str) -> bool:
    return char != "\n" and is_hidden(char)


def from_yaml(text: str) -> dict[str, Any]:
    """Return the object that is written there, in YAML or JSON. Raises :class:`AnswerRefused`."""
    try:
        found = yaml.load(text, Loader=_Loader)  # noqa: S506  # made of the safe one
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise AnswerRefused(f"this is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or not _is_json(found):
        raise AnswerRefused("this is not an object with names and values, as JSON has them")
    return found


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(_is_json(each) for each in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


# --- Having a person edit a text in an editor of their own.

Edit = Callable[[str, str], str]
"""Takes a text and the ending of its file's name, and returns the text as it was left."""


def edited(text: str, ending: str) -> str:
    """Open a text in ``$VISUAL`` or ``$EDITOR``, else in an editor that is there; return it after.

    It may not be one of the workspace's, and is started in a folder where no workspace can leave
    settings for it (SE-01): ``click.edit`` keeps neither. Ctrl-C is the editor's own meanwhile.
    Raises :class:`AnswerRefused` without an editor; where one fails, it names the file that holds
    what was written.
    """
    command = _editor()
    folder = Path(tempfile.mkdtemp(prefix="daruma-edit-"))
    file = folder / f"edit{ending}"
    file.write_text(text, encoding="utf-8", newline="")
    found, env = find_program(command[0]), host_environment()
    if found is None:
        raise AnswerRefused(f"the editor {command[0]!r} is not there, or lies in the workspace")
    try:
        with _interrupts_left_alone():
            code = run_program([found, *command[1:], str(file)], env=env, cwd=folder).returncode
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


@contextmanager
def _interrupts_left_alone() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are none of this thread's
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be for programs too
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


T = TypeVar("T")


def edited_until(
    text: str, check: Callable[[str], T], edit: Edit, paper: Paper, read: Read
) -> T | None:
    """Have a text edited as YAML until ``check`` takes it; None where it is left as it was.

    What ``check`` raises (a :class:`~daruma.state.errors.DarumaError`) is told, and the text can be
    edited on.
    """
    before = text
    while True:
        try:
            after = edit(before, ".yaml")
            if after == text or not after.strip():
                paper.put(Line("note", "nothing was changed"))
                return None
            before = after
            return check(after)
        except DarumaError as error:
            paper.put(Line("bad", str(error)))
        if choice({"e": "[e]dit on", "b": "[b]ack"}, read) == "b":
            return None
