"""Text made safe to print, and what went wrong, as a person reads it: one line, no traceback."""

import re
import tempfile
import traceback
import unicodedata
from typing import Final

import typer

from daruma.state.errors import DarumaError
from daruma.state.text import spell_character

# --- Text of models, tools and people, made safe to print: it may hold anything a terminal obeys.


def shown(text: str) -> str:
    """Return text with line ends and spaces as they are, and all else that is invisible spelled.

    Escape sequences, other control characters, marks that change the direction of writing and lone
    surrogates become ``\\x1b`` and the like.
    """
    return "".join(_shown(char) for char in re.sub("\r\n?", "\n", text))


def one_line(text: str, limit: int = 120) -> str:
    """Return text on one line of at most ``limit`` characters."""
    flat = " ".join(shown(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def beginning(text: str, lines: int) -> str:
    """Return the first ``lines`` lines that are not blank, with a mark if there are more."""
    kept = [line.rstrip() for line in shown(text).splitlines() if line.strip()]
    return "\n".join(kept[:lines]) + (" …" if len(kept) > lines else "")


def _shown(char: str) -> str:
    if char.isprintable() or unicodedata.category(char) == "Zs":
        return char
    return {"\t": "    ", "\n": "\n"}.get(char) or spell_character(char)


# --- What went wrong, as one line on standard error and exit code 2; never a bare traceback.

FAILED = 1
USAGE = 2


def failed(error: Exception) -> bool:
    """Whether it is what a task failed of, raised as it is where emergency is switched off."""
    from daruma.graph.models import ScriptedFault
    from daruma.state.failure import TaskFailed, classify

    if isinstance(error, DarumaError):
        return isinstance(error, TaskFailed | ScriptedFault)
    return classify(error) in ("llm_failure", "timeout", "script_mismatch")


def complaint(error: Exception) -> str | None:
    """Return the one line that says what is wrong and what to do; None for a bug of ours."""
    if isinstance(error, DarumaError):
        return str(error)
    from psycopg import Error
    from psycopg.errors import InsufficientPrivilege

    if isinstance(error, Error):
        reason = " ".join(str(error).split())
        lost = f"the database was lost ({reason}): when it is back, `daruma resume THREAD` goes on"
        refused = (
            f"the database refused it ({reason}): its role has to be granted reading and "
            "writing of all tables there, or let DARUMA_POSTGRES_URL name another role"
        )
        return refused if isinstance(error, InsufficientPrivilege) else lost
    if failed(error):
        from daruma.tools.text import without_keys

        reason = " ".join(without_keys(str(error)).split())
        return f"{type(error).__name__}: {reason}; `daruma show THREAD` says where it stands"
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the folder that this terminal is in is gone: `cd` to one that is there"
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}; `daruma threads` shows what can be resumed"
    return None


def kept(error: Exception) -> str:
    """Keep the traceback of a bug in a file, and return the line that says so."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="daruma-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.writelines(traceback.format_exception(error))
    return f"this is a bug ({type(error).__name__}: {error}): report it with {file.name}"


# --- What is said of a command line that can not be read.

UsageMistake: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for a command line that it can not read; it has no public name of its own."""

_MOST: Final = 300
"""Characters of such a line that may quote what was typed."""


def usage_line(error: Exception) -> str:
    """Say what of a command line can not be read, and where it is explained."""
    said: str = getattr(error, "format_message", error.__str__)()
    said, context = one_line(said, _MOST).rstrip("."), getattr(error, "ctx", None)
    if context is None:
        return said
    names = getattr(context.command, "commands", None)
    if said == "Missing command" and names:
        said += f" of `{context.command_path}`: {', '.join(names)}"
    elif said.startswith("Got unexpected extra argument"):
        said += ": put words with spaces in quotes"
    option = str(getattr(error, "option_name", "")).lstrip("-")
    arguments = [each for each in context.command.params if option and each.name == option]
    if arguments:  # what was given as an option is none
        said += f": {arguments[0].metavar} stands without an option before it"
    return f"{said}; `{context.command_path} --help` explains it"
