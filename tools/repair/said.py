"""What proper JSON says needs no guess: its texts are known, in one spelling each."""

import json
from collections.abc import Iterator
from typing import Any


def said_texts(raw: str) -> frozenset[str] | None:
    """Return the texts of proper JSON, also of JSON that was quoted whole; None of a broken one."""
    try:
        value = json.loads(raw)
        return said_texts(value) if isinstance(value, str) else frozenset(_texts(value))
    except (ValueError, RecursionError):
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
