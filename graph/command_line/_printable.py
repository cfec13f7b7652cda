"""Text of models, tools and people, made safe to print: it may hold anything a terminal obeys."""

import re
import shlex
import unicodedata

from daruma.state.text import spell_character


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


def counted(number: float, what: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{number} {what}" + ("" if number == 1 else "s")


def follow_command(thread: str) -> str:
    """Return the command that tells what is done on a thread elsewhere."""
    return f"daruma show {shlex.quote(thread)} --follow"


def resume_command(thread: str) -> str:
    """Return the command that goes on with a thread, ready to be pasted."""
    return f"daruma resume {shlex.quote(thread)}"
