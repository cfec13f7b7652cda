"""Text made visible for a person who decides: what hides in it is spelled, and warned of."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from daruma.state.hidden_characters import BIDI, hiding_places, is_control, is_visible, spelled
from daruma.state.look_alikes import look_alikes

T = TypeVar("T")

LONGEST_LINE: Final = 500
"""Characters; a terminal of 100 columns shows that on five rows."""

MOST_BLANKS: Final = 40
"""Blank characters in a row, half a terminal's width; deep indentation has fewer."""

MOST_BLANK_LINES: Final = 10

_BEFORE_SPELLING = re.compile(r"(?<!\\)\\++(?=x[0-9a-f]{2}|u[0-9a-f]{4}|\0)", re.IGNORECASE)
"""Backslashes before what is spelled, or reads so. Eight digits begin with four."""


def revealed(text: str) -> str:
    """Return text with all that is invisible or odd spelled; line feeds and tabs stay.

    Two texts never look the same: where backslashes stand before such a spelling, or before text
    that reads like one, they are doubled. All other backslashes stay as they are.
    """
    return _revealed(text, kept="\n\t")


def revealed_line(text: str) -> str:
    """Return text as :func:`revealed` does, on one line: line feeds and tabs are spelled too."""
    return _revealed(text, kept="")


def warnings(text: str) -> tuple[str, ...]:
    """Return one line for each way in which a text may show something else than it is.

    Characters are counted from 1. Ordinary text in any language has none.
    """
    odd = hiding_places(text)
    kinds = {
        "control characters": [one for one in odd if is_control(one[1])],
        "characters that turn the direction of writing": [one for one in odd if one[1] in BIDI],
        "invisible or unassigned characters": [
            one for one in odd if not is_control(one[1]) and one[1] not in BIDI
        ],
    }
    found = [f"{kind}: {_listed(ones, _placed)}" for kind, ones in kinds.items() if ones]
    alike = list(look_alikes(text))
    found += [f"letters that look like others: {_listed(alike, _named)}"] if alike else []
    return (*found, *_stretched(text))


def _revealed(text: str, *, kept: str) -> str:
    spelt = "".join(char if is_visible(char) or char in kept else f"\0{char}" for char in text)
    doubled = _BEFORE_SPELLING.sub(r"\g<0>\g<0>", spelt)
    return re.sub("\0(.)", lambda found: spelled(found[1]), doubled, flags=re.DOTALL)


def _placed(one: tuple[int, str]) -> str:
    return f"{spelled(one[1])} at {one[0] + 1}"


def _named(one: tuple[int, str, str]) -> str:
    at, letter, word = one
    return f"{letter} ({unicodedata.name(letter)}) at {at + 1} in '{revealed_line(word[:40])}'"


def _listed(ones: Sequence[T], told: Callable[[T], str], most: int = 3) -> str:
    rest = f" and {len(ones) - most} more" if len(ones) > most else ""
    return ", ".join(map(told, ones[:most])) + rest


def _stretched(text: str) -> Iterator[str]:
    body = text.rstrip()
    gaps = [(found.start(), found[0]) for found in re.finditer(r"\s+", body)]
    for at, gap in gaps:
        if len(blanks := gap.rpartition("\n")[2]) >= MOST_BLANKS:
            yield f"a run of {len(blanks)} blanks before character {at + len(gap) + 1}"
            break
    for at, gap in gaps:
        if gap.count("\n") > MOST_BLANK_LINES:
            yield f"{gap.count(chr(10)) - 1} blank lines before character {at + len(gap) + 1}"
            break
    longest = max(map(len, text.split("\n")))
    if longest > LONGEST_LINE:
        yield f"a line of {longest} characters"
