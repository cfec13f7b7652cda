"""A text read to the last character: nothing in it is guessed, and nothing left out."""

from dataclasses import dataclass
from typing import Any

from daruma.tools.repair.reader import Reader


@dataclass(frozen=True)
class Reading:
    """A value read: where its text ends, how many of its containers are open there, rungs used."""

    value: Any
    end: int
    unclosed: int = 0
    rungs: tuple[str, ...] = ()


def read_value(text: str, start: int = 0) -> Reading:
    """Read the value that begins at ``start``. Raises :class:`Unreadable` or :class:`CutOff`.

    Of a text that ends after a whole value, with containers open, the number of them is told.
    """
    reader = Reader(text, start)
    value = reader.value(0)
    return Reading(value, reader.end, reader.unclosed, tuple(dict.fromkeys(reader.rungs)))
