"""Namespaces and keys as Postgres can hold and order them, whatever characters they have. Pure."""

import json
from collections.abc import Sequence
from typing import Final

_END: Final = "\x1f"
_AFTER: Final = "\x20"
"""The character after ``_END``: a prefix's namespaces lie between the two."""
_LAST: Final = "\U0010ffff"
"""What is stored is ASCII, and so comes before this."""


def stored_namespace(namespace: Sequence[str]) -> str:
    r"""Return a namespace as one text, so that one within another begins with it.

    >>> stored_namespace(("a", "b"))
    'a\x1fb\x1f'
    """
    return "".join(stored_name(label) + _END for label in namespace)


def named_namespace(stored: str) -> tuple[str, ...]:
    """Return a namespace as it was given."""
    return tuple(named(label) for label in stored.split(_END)[:-1])


def stored_name(name: str) -> str:
    """Return a name in characters that every database can hold."""
    return json.dumps(name)[1:-1]


def named(stored: str) -> str:
    """Return a name as it was given."""
    return str(json.loads(f'"{stored}"'))


def between(prefix: Sequence[str]) -> tuple[str, str]:
    """Return from where, and up to where, the stored namespaces of a prefix lie.

    >>> between(("a",))
    ('a\\x1f', 'a ')
    """
    first = stored_namespace(prefix)
    return first, first[:-1] + _AFTER if first else _LAST


def prefixes(namespace: Sequence[str]) -> list[tuple[str, ...]]:
    """Return all beginnings of a namespace, with itself."""
    return [tuple(namespace[:length]) for length in range(1, len(namespace) + 1)]
