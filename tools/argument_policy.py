"""Whether an argument of a call fits a pattern of the policy. Pure.

Two questions with two answers when in doubt: :func:`surely_fits` says no, :func:`may_fit` says yes.
Links are not seen here: what a path leads to is known only when it is opened.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from daruma.tools.files.glob_match import Glob

MOST_PARTS: Final = 100
"""Pieces of a path; one with more is not looked at, but taken for the worse."""

DEEPEST: Final = 20
"""Lists and objects within each other, likewise."""

_NAMES_OF_PATHS: Final = ("path", "file", "dir", "folder", "cwd", "root", "target", "dest")

NONE: Final = object()
UNTOLD: Final = object()


class _TooDeep(Exception):
    """Raised for a value that can not be looked at."""


def surely_fits(name: str, value: object, glob: str) -> bool:
    """Whether all that a value holds fits; a path must stay inside the pattern's folder."""
    try:
        texts = list(_texts(value))
    except _TooDeep:
        return False
    as_path = "/" in glob or any(part in name.casefold() for part in _NAMES_OF_PATHS)
    fits = _path_inside if as_path else fnmatchcase
    return bool(texts) and all(fits(text, glob) for text in texts)


def may_fit(value: object, glob: str) -> bool:
    """Whether anything that a value holds may fit, as text or as a path, in any case of letters.

    As text, ``*`` stands for slashes too. A path that is absolute or leads out of the workspace
    may lead back in: its end is what counts. ``folder/**`` includes the folder itself.
    """
    try:
        texts = [_folded(text) for text in _texts(value)]
    except _TooDeep:
        return True
    folded = _folded(glob)
    return any(fnmatchcase(text, folded) or _path_near(text, folded) for text in texts)


def argument(args: Mapping[str, Any], parameters: Mapping[str, Any], name: str) -> object:
    """Return the argument that a tool will get: the given one, its default, ``UNTOLD``, ``NONE``.

    ``UNTOLD`` is one that may be left out, with a default that its schema does not tell.
    """
    if name in args:
        return args[name]
    properties, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(properties, Mapping) or name not in properties:
        return NONE
    untold = NONE if isinstance(required, list) and name in required else UNTOLD
    schema = properties[name]
    return schema.get("default", untold) if isinstance(schema, Mapping) else untold


def _texts(value: object, depth: int = DEEPEST) -> Iterator[str]:
    if depth == 0:
        raise _TooDeep
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and value:
        yield from (
            text for pair in value.items() for each in pair for text in _texts(each, depth - 1)
        )
    elif isinstance(value, list | tuple) and value:
        yield from (text for each in value for text in _texts(each, depth - 1))
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except ValueError:  # a number of too many digits
        raise _TooDeep from None


def _path_inside(text: str, glob: str) -> bool:
    path = _normal(text)
    if len(path) > MOST_PARTS or ".." in path or text.startswith("~"):
        return False
    if text.startswith("/") != glob.startswith("/"):
        return False
    return Glob(_joined(_normal(glob), glob)).matches("/".join(path) or ".")


def _path_near(text: str, glob: str) -> bool:
    path = _normal(text)
    if len(path) > MOST_PARTS:
        return True
    pattern = _joined(_normal(glob), glob)
    patterns = [Glob(pattern), *([Glob(base)] if (base := pattern.removesuffix("/**")) else [])]
    far = text.startswith(("/", "~")) or ".." in path
    ends = range(len(path)) if far else range(min(1, len(path)))
    return any(each.matches("/".join(path[at:])) for each in patterns for at in ends)


def _normal(text: str) -> tuple[str, ...]:
    """Return the pieces of a path without empty ones, ``.``, and ``..`` where it can be undone."""
    pieces: list[str] = []
    for piece in text.split("/"):
        if piece == ".." and pieces and pieces[-1] != "..":
            pieces.pop()
        elif piece not in {"", "."}:
            pieces.append(piece)
    return tuple(pieces)


def _joined(pieces: tuple[str, ...], glob: str) -> str:
    """Return a normal pattern; one with a slash keeps one, so that it is matched from the root."""
    return ("./" if "/" in glob and len(pieces) == 1 else "") + "/".join(pieces)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())
