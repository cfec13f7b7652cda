"""Where memories are kept: whose they are, and which role of a team sees them (CO-04)."""

from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import unquote

ROOT: Final = ("daruma", "memory")
COMMON: Final = "common"
"""The role of what everybody sees; an expert of that name has no memories of its own."""

DEFAULT: Final = "default"
"""The owner where neither the settings nor a workspace name one."""

LONGEST: Final = 200
"""Characters of a label; a longer one ends with a hash of the whole, as indexes have limits."""

_ESCAPED: Final = frozenset("%.")
"""Stores take no ``.`` in a label, and ``%`` marks what stands for another character."""
_EMPTY: Final = "%"
"""The label of no text: stores take no empty one, and an escaped ``%`` has two digits behind it."""


def owner_of(namespace: str | None, workspace: str | None) -> str:
    """Return whose memories a task works with: the setting's, else the workspace's, else default.

    A workspace is told by its absolute path with links resolved: two names of one folder are one
    owner; a copy, a clone or a folder that was moved is another. This looks at the disk.
    """
    if namespace is not None:
        return namespace
    return DEFAULT if workspace is None else str(Path(workspace).resolve())


def namespace_of(owner: str, role: str = "") -> tuple[str, ...]:
    """Return the store's namespace of an owner's memories for a role; empty: the common ones."""
    return (*ROOT, label(owner), label(role or COMMON))


def all_of(owner: str) -> tuple[str, ...]:
    """Return the namespace that all memories of an owner lie beneath."""
    return (*ROOT, label(owner))


def seen_by(owner: str, role: str) -> list[tuple[str, ...]]:
    """Return the namespaces that a role sees: its own and the common one; without one, that."""
    return list(dict.fromkeys((namespace_of(owner, role), namespace_of(owner))))


def label(text: str) -> str:
    """Return a text as a label that every store takes; two texts never have the same one."""
    whole = "".join(_written(each) for each in text) or _EMPTY
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[:LONGEST]}%{sha256(whole.encode()).hexdigest()[:32]}"


def owner_in(namespace: tuple[str, ...]) -> str:
    """Return whose memories a namespace holds; of a long name its label, which is cut."""
    found = namespace[len(ROOT)]
    if found == _EMPTY:
        return ""
    return found if len(found) > LONGEST else unquote(found, errors="surrogatepass")


def _written(char: str) -> str:
    if char.isprintable() and char not in _ESCAPED:
        return char
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
