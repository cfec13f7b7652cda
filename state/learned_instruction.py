"""How learned instructions stand in a prompt: as what records say, which orders nothing."""

from html import escape
from typing import Final

from daruma.state.lessons import Lessons, Place

HEAD: Final = """\
What the records of earlier tasks suggest. The task, the user and what you see for yourself come \
first:"""

MOST: Final = 4
"""Instructions that one prompt holds at most."""
LONGEST: Final = 400
"""Characters of each that are shown."""


def learned_instruction(lessons: Lessons | None, actor: str, place: Place) -> str:
    """Return what an actor's prompt holds of lessons at a place; empty without any for it.

    Each is one line. ``&``, ``<``, ``>`` and quotes are written as in XML, so that none can open or
    close a block. It depends on the lessons alone, which stay the same for a whole task.
    """
    given = lessons.instructions if lessons else ()
    ours = [each.text for each in given if (each.actor, each.place) == (actor, place)]
    lines = [_line(text) for text in ours if text.strip()]
    return "\n".join((HEAD, *lines[:MOST])) if lines else ""


def _line(text: str) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text)
    return f"- {escape(' '.join(shown.split())[:LONGEST])}"
