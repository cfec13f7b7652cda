"""The text of a value that it is found by. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from langgraph.store.base import get_text_at_path, tokenize_path

from daruma.tools.text.search import texts_in

Fields = Sequence[str] | Literal[False] | None
"""Which fields a value is found by: those, none of them, or all texts and numbers in it."""

MOST: Final = 400_000
"""Characters that are read; an item is found by what stands in these."""


def text_of(value: Mapping[str, Any], fields: Fields) -> str:
    """Return the text of a value's fields, one under the other.

    >>> text_of({"a": "red", "b": [1, {"c": "blue"}]}, None)
    'red\\n1\\nblue'
    """
    if fields is False:
        return ""
    if fields is None:
        found = texts_in(value)
    else:
        found = (text for path in fields for text in get_text_at_path(value, tokenize_path(path)))
    return "\n".join(found)[:MOST]
