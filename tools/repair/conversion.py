"""One value as another JSON type, where nothing of it is lost.

What is not here is left out on purpose: an integer for a text (the zeros before it may be gone
already), a decimal for a text (1.10 came as 1.1), 1 for true, a text with separators for a list.
"""

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.reading import read_value
from daruma.tools.repair.tokens import DIGITS

Converted = tuple[Any, str]

INTEGER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
SEPARATOR: Final = re.compile(r"[\s,;|]")
BOOLEANS: Final = {"true": True, "True": True, "false": False, "False": False}
EXACT: Final = 2**53
"""Up to here every whole float is the number that was written."""


def _integer(value: Any) -> Converted | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value), "whole number"
    if isinstance(value, str) and len(value) <= DIGITS and (found := INTEGER.fullmatch(value)):
        return int(found.group(1)), "number from text"
    return None


def _number(value: Any) -> Converted | None:
    if not isinstance(value, str) or len(value) > DIGITS or NUMBER.fullmatch(value) is None:
        return None
    number = json.loads(value)
    if isinstance(number, float) and (
        not math.isfinite(number) or Decimal(repr(number)) != Decimal(value)
    ):
        return None
    return number, "number from text"


def _boolean(value: Any) -> Converted | None:
    known = isinstance(value, str) and value in BOOLEANS
    return (BOOLEANS[value], "boolean from text") if known else None


def _null(value: Any) -> Converted | None:
    return (None, "null from text") if value in ("null", "None") else None


def _array(value: Any) -> Converted | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return [value], "lone value to list"
    if value.lstrip().startswith(("[", "{", "(", '"')):
        return _decoded(value, list, "array from text")
    return None if SEPARATOR.search(value) else ([value], "lone value to list")


def _object(value: Any) -> Converted | None:
    return _decoded(value, dict, "object from text") if isinstance(value, str) else None


def _decoded(text: str, wanted: type, rung: str) -> Converted | None:
    try:
        reading = read_value(text)
    except Unreadable:
        return None
    whole = not reading.unclosed and not text[reading.end :].strip()
    return (reading.value, rung) if whole and isinstance(reading.value, wanted) else None


CONVERSIONS: Final[dict[str, Callable[[Any], Converted | None]]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "array": _array,
    "object": _object,
}
"""From a value to one of the type named, with the rung's name; None where it would be a guess."""
