"""Two kinds of quotes in one text: a string in one kind may be several in the other."""

import re
from typing import Final

from daruma.tools.repair.outcome import Unreadable

QUOTE_AND_MARK: Final = {
    "'": re.compile(r'"\s*[:,}\]]|[{\[,:]\s*"'),
    '"': re.compile(r"'\s*[:,}\]]|[{\[,:]\s*'"),
}
"""The other kind of quote next to a mark of JSON: what is in a string looks like its outside."""


class Quotes:
    """Remembers the quotes of a text, and whether the inside of a string looks like its outside."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._doubtful = False

    def add(self, quote: str, value: str) -> None:
        """Remember a string, and raise :class:`Unreadable` where all of them have two readings."""
        self._kinds.add(quote)
        other = QUOTE_AND_MARK.get(quote)
        self._doubtful |= other is not None and other.search(value) is not None
        if self._doubtful and len(self._kinds) > 1:
            raise Unreadable("two kinds of quotes can be read in two ways")
