"""Which names may be used beneath a root: a path's text is checked before anything is opened."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from daruma.tools.errors import PathRefused

Parts: TypeAlias = tuple[str, ...]
"""A relative path in pieces; empty for the root itself."""

LONGEST_SHOWN = 200


def shown(path: str) -> str:
    """The path as one printable line for an error text."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def parts_beneath(path: str, roots: Iterable[Path]) -> Parts:
    """The pieces of `path` relative to the root.

    An absolute path is accepted if it lies, piece by piece, inside one of `roots` (several names
    of one directory). This looks at text only: links are the opener's concern.

    Raises PathRefused: empty, NUL, not encodable, `..`, absolute elsewhere, or inside `.git`.
    """
    _refuse_unusable(path)
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        raise PathRefused(f"{shown(path)}: '..' is not allowed: name it from the workspace's root")
    if pure.is_absolute():
        pure = _made_relative(pure, roots)
    refuse_git(pure.parts)
    return pure.parts


def refuse_git(parts: Parts) -> None:
    """Raise PathRefused if one of the pieces is `.git`, however a file system may spell it."""
    if any(_is_git(part) for part in parts):
        raise PathRefused(f"{shown('/'.join(parts))}: git's own files are not to be touched here")


def _refuse_unusable(path: str) -> None:
    if not path:
        raise PathRefused("the path is empty: use '.' for the workspace's root")
    if "\0" in path:
        raise PathRefused(f"{shown(path)}: a path can not hold a NUL character")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PathRefused(f"{shown(path)}: the path is not valid Unicode") from None


def _made_relative(pure: PurePosixPath, roots: Iterable[Path]) -> PurePosixPath:
    for root in roots:
        if pure.is_relative_to(root):
            return pure.relative_to(root)
    raise PathRefused(f"{shown(str(pure))}: outside the workspace: use a path relative to its root")


def _is_git(part: str) -> bool:
    # Some file systems fold case, compatibility forms and invisible characters (CVE-2014-9390).
    visible = "".join(c for c in part if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ") == ".git"
