"""Text from outside on one line: what experience keeps of it, and tells of it again."""

from typing import Final

LONGEST: Final = 300
"""Characters of such a line: a sentence or two."""

_READ: Final = 20
"""Times that length are looked at: of more, whitespace for the most part, the rest is not read."""
_JOINER: Final = "\N{ZERO WIDTH JOINER}"
"""It holds emoji together, and is the one unprintable character that stays."""


def printable_line(text: str, longest: int = LONGEST) -> str:
    """Return a text as one line of printable characters, cut to ``longest``.

    Whatever a terminal or a reader could take for more than a character, control characters and
    those that turn the direction of writing too, is as good as a space.

    >>> printable_line("a\\n\\tb \\x1b[2J")
    'a b [2J'
    """
    read = text[: longest * _READ]
    kept = "".join(c if c.isprintable() or c == _JOINER else " " for c in read)
    line = " ".join(kept.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
