"""A memory as it is kept: its id, its bounds, and what of an item of the store is one."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from daruma.state.recalled import Remembered
from daruma.tools.errors import ToolError
from daruma.tools.key_masking import without_keys
from daruma.tools.memory.namespaces import COMMON
from daruma.tools.results import clean

LONGEST_TEXT: Final = 2_000
"""Characters: a fact, not a document; five of them are 2,500 tokens of every request."""

LONGEST_NAME: Final = 64
"""Characters of a section or a role."""


class MemoryRefused(ToolError):
    """Raised for what can not be remembered as it is; says what to change."""


def checked(text: str, *, section: str = "", role: str = "", at: float = 0.0) -> Remembered:
    """Return a memory that may be kept. Raises :class:`MemoryRefused`.

    ``[key]`` stands in it for what looks like a key. Its id is made of its text and role, so that
    the same text is the same memory however often it is stored.
    """
    text = without_keys(clean(text)).strip()
    if not text:
        raise MemoryRefused("nothing to remember: the text is empty")
    if len(text) > LONGEST_TEXT:
        raise MemoryRefused(
            f"the text has {len(text)} characters, a memory at most {LONGEST_TEXT}: say it "
            "shorter, or store it in parts"
        )
    section, role = (_name(each, what) for each, what in ((section, "section"), (role, "role")))
    return Remembered(id=_id(text, role), text=text, section=section, role=role, at=at)


def as_value(memory: Remembered, **stored_by: str) -> dict[str, Any]:
    """Return the value that a store keeps; the text first, as it is what is searched."""
    return {"text": memory.text, "section": memory.section, "at": memory.at, **stored_by}


def from_value(key: str, value: Mapping[str, Any], role: str) -> Remembered | None:
    """Return the memory that an item holds; None for one that somebody else put there."""
    text, section, at = value.get("text"), value.get("section") or "", value.get("at") or 0.0
    with suppress(ValidationError):
        found = Remembered(id=key, text=text or "", section=section, role=role, at=at)
        whole = found.text and len(found.text) <= LONGEST_TEXT
        return replace(found, at=found.at if 0 <= found.at <= _LATEST else 0.0) if whole else None
    return None


def _name(given: str, what: str) -> str:
    name = " ".join(clean(given).split())
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise MemoryRefused(f"the {what} has to be a short name of at most {LONGEST_NAME} letters")
    return "" if what == "role" and name == COMMON else name


def _id(text: str, role: str) -> str:
    same = f"{role}\0{' '.join(text.split()).casefold()}"
    return hashlib.sha256(same.encode()).hexdigest()[:12]


_LATEST: Final = 253402300799.0
"""The end of the year 9999, in Unix time."""
