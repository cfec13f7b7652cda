"""Paths of any bytes as text that can be stored, sent and printed."""

from daruma.tools.files.paths import Parts


def told(parts: Parts) -> str:
    """Return a path as valid Unicode: bytes that are none are written as escapes."""
    return storable("/".join(parts))


def storable(text: str) -> str:
    """Return a text as valid Unicode."""
    return text.encode(errors="backslashreplace").decode()
