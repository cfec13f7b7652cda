"""What a message says besides a day or a time: one that says more may be another request. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from daruma.tools.continuity.phrases import VAGUE_TIME
from daruma.tools.dates.moments import moment_in
from daruma.tools.dates.words import WORDS, plain

LONGEST: Final = 6
"""Words of a moment that are tried together."""

_FILLING: Final = frozenset(
    plain(
        "a an the this that next last same at on in by of for to about around roughly any anytime "
        "sometime time day is be would will i me you it we think guess like prefer works work fine "
        "good ok okay best better great perfect suits please thanks possible then maybe perhaps "
        "am im um gegen der die das den dem ein einen etwa ungefähr so früh ist wäre passt geht "
        "mir ich gut bitte danke dann vielleicht "
        "le la les au aux vers ce cet cette du de des en pour est serait moi me va bien convient "
        "prochain prochaine merci alors "
        "el los las por para a del mi es sería bien próximo próxima mismo misma entonces"
    ).split()
)
"""Words that say nothing by themselves. None that negates is among them."""
_NUMBER: Final = re.compile(r"\d{1,4}(?:h|am|pm|st|nd|rd|th)?")


def besides_time(text: str, now: datetime) -> list[str] | None:
    """Return what a text in plain letters says besides time, None where it speaks of no time.

    Of a writing without spaces a single character more is none.
    """
    words = text.split()
    rest = " ".join(_without_moment(words, now))
    left = VAGUE_TIME.sub(" ", rest)
    if left == rest and rest == " ".join(words):
        return None
    return [word for word in re.findall(r"\w+", left) if not _says_nothing(word)]


def _without_moment(words: Sequence[str], now: datetime) -> Sequence[str]:
    """Return the words but for the longest ones next to each other that are a day or a time."""
    spans = (
        (at, at + n)
        for n in range(min(LONGEST, len(words)), 0, -1)
        for at in range(len(words) - n + 1)
    )
    for begins, ends in spans:
        if moment_in(" ".join(words[begins:ends]).strip(",.;:!?"), now):
            return [*words[:begins], *words[ends:]]
    return words


def _says_nothing(word: str) -> bool:
    lone = len(word) == 1 and not word.isascii()
    return lone or word in _FILLING or word in WORDS or _NUMBER.fullmatch(word) is not None
