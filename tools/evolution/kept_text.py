"""Text that is kept of tasks: one line, bounded, without keys and without what hides. Pure."""

from typing import Final

from daruma.tools.key_masking import without_keys
from daruma.tools.results import clean

LONGEST: Final = 300
"""Characters of what a pitfall says, or advises: three of them are no more than a paragraph."""

_LOOKED_AT: Final = 20_000


def kept_line(text: str, longest: int = LONGEST) -> str:
    """Return a text as one line that may be kept: keys masked, nothing that controls or hides.

    >>> kept_line("red\\n  \\x1b[31mblood")
    'red [31mblood'
    """
    text = without_keys(clean(text[:_LOOKED_AT]))
    if not text.isprintable():
        text = "".join(each if each.isprintable() else " " for each in text)
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
