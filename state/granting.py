"""What can be said to a budget that is spent: more of it, as much again, or to stop. Pure."""

import re
from typing import Final, get_args

from daruma.state.amounts import Amounts, Measure
from daruma.state.grant import Overrun

AGAIN: Final = "go on with as much again"
STOP: Final = "stop"

_AMOUNT: Final = re.compile(
    rf"(?P<measure>{'|'.join(get_args(Measure))})\s+"
    r"(?P<number>(?:\d{1,12}|\d{1,3}(?:[,_]\d{3}){1,3})(?:\.\d{1,9})?)",
    re.IGNORECASE | re.ASCII,
)
"""Commas stand between thousands only: ``2,5`` is two and a half to some, and 25 to nobody."""


def amount_in(answer: str) -> tuple[Measure, float] | None:
    """Read an amount such as ``tokens 50000`` or ``usd 2.5``; None where there is none above 0."""
    found = _AMOUNT.fullmatch(answer.strip())
    if found is None:
        return None
    named = found["measure"].lower()
    measure: Measure = next(each for each in get_args(Measure) if each == named)
    number = float(found["number"].replace(",", "").replace("_", ""))
    if number <= 0 or (measure == "tokens" and number != int(number)):
        return None
    return measure, number


def granted(answer: str, measure: Measure, limit: float) -> Amounts | None:
    """Return what an answer grants of what is spent, None for one that says to stop."""
    if answer == STOP:
        return None
    if answer == AGAIN:
        return amounts(measure, limit)
    found = amount_in(answer)
    return amounts(*found) if found else None


def amounts(measure: Measure, number: float) -> Amounts:
    """Return so much of one measure."""
    return Amounts(
        tokens=int(number) if measure == "tokens" else None,
        usd=number if measure == "usd" else None,
        seconds=number if measure == "seconds" else None,
    )


def in_words(measure: Measure, number: float) -> str:
    """Return an amount as it can be answered: ``tokens 50000``."""
    return f"{measure} {number:.9f}".rstrip("0").rstrip(".")


def told(over: Overrun) -> str:
    """Say which budget is spent, in a line."""
    whose = "The task's" if over.scope == "task" else "The phase's"
    return f"{whose} budget of {shown(over.measure, over.limit)} is spent ({_used(over)} used)."


def shown(measure: Measure, number: float) -> str:
    """Return an amount as people write it: ``50,000 tokens``, ``$0.25``, ``90 s``."""
    if measure == "tokens":
        return f"{number:,.0f} tokens"
    return f"${number:.4f}".rstrip("0").rstrip(".") if measure == "usd" else f"{number:,.1f} s"


def _used(over: Overrun) -> str:
    return shown(over.measure, over.spent).removesuffix(" tokens")
