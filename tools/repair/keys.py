"""Keys of an object that are spelled in another way than its schema has them."""

from collections.abc import Mapping
from typing import Any

from daruma.tools.repair.schema import same_word


def spelling(value: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """Return the known key for each unknown one, where there is exactly one and no rival."""
    free: dict[str, list[str]] = {}
    for key in known:
        if key not in value:
            free.setdefault(same_word(key), []).append(key)
    meant: dict[str, list[str]] = {}
    for key in value:
        if key not in known:
            meant.setdefault(same_word(key), []).append(key)
    return {
        keys[0]: free[word][0]
        for word, keys in meant.items()
        if len(keys) == 1 and len(free.get(word, ())) == 1
    }
