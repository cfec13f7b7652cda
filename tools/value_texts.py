"""The texts in a value of a store. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a JSON value, without the keys.

    >>> list(texts_in({"a": "red", "b": [1, {"c": "blue"}]}))
    ['red', '1', 'blue']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
