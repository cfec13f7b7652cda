"""Every line that the command can be given by mistake, made from the tree of its commands."""

from collections.abc import Iterator
from typing import Any, Final

from typer.main import get_command

from daruma.graph.command_line._app import app

Words = tuple[str, ...]

VALUES: Final[tuple[Words, ...]] = (
    (),
    ("",),
    (" ",),
    ("no-such-thing",),
    ("--zzz",),
    ("gone/away",),
    ("ws",),
    ("file.txt",),
    ("~nobody/x",),
    ("\udcff",),
    ("-1",),
    ("9" * 400,),
    ("x" * 5000,),
    ("a\x1b[31m\nb",),
    ("scripted:none.yaml",),
)
"""What stands where a value belongs: nothing, nonsense, a folder ``ws``, a file, no text."""

SHELLS: Final = ("bash", "zsh", "fish")


def commands(command: Any = None, path: Words = ()) -> Iterator[tuple[Words, Any]]:
    """Yield every command of the tree with the words that lead to it, the program itself first."""
    command = command or get_command(app)
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


def lines() -> list[Words]:
    """Return every command alone, with too much, and each of its parameters with all values."""
    return list(dict.fromkeys(_ending(line) for line in _lines()))


def presses() -> list[Words]:
    """Return what stands on a line when Tab is pressed: the last word is the one begun."""
    found = list[Words]()
    for path, command in commands():
        begun = ["", "-", "--", "x", "'", '"a', "\udcff", "$(id)"]
        found += [(*path, word) for word in begun]
        found += [(*path, _option(each), word) for each in _options(command) for word in ("", "a")]
    return list(dict.fromkeys(found))


def _lines() -> Iterator[Words]:
    for path, command in commands():
        arguments = len([each for each in command.params if each.param_type_name == "argument"])
        for more in ((), ("--help",), ("--no-such-option",), ("--",), ("x",) * 5):
            yield (*path, *more)
        for value in VALUES:
            yield (*path, *value * (arguments or 1))
            yield (*path, *value)
            for option in _options(command):
                yield (*path, _option(option), *value)
                yield (*path, *("no-such-thing",) * arguments, _option(option), *value)


def _options(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option"]


def _option(parameter: Any) -> str:
    return str(max(parameter.opts, key=len))


def _ending(line: Words) -> Words:
    """A worker would wait for work."""
    return (*line, "--once") if line[:1] == ("worker",) and "--" not in line else line
