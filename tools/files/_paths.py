"""Names beneath a root: which may be used, patterns, errors about them; bytes that are text."""

import codecs
import errno
import os
import re
import site
import sys
import sysconfig
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final, TypeAlias

import daruma
from daruma.tools.errors import EditRefused, FileMissing, FileUnavailable, PathRefused, ToolError

# --- Which names may be used beneath a root: a path's text is checked before anything is opened.

Parts: TypeAlias = tuple[str, ...]
"""A relative path in pieces; empty for the root itself."""

LONGEST_SHOWN = 200


def printable_path(path: str) -> str:
    """The path as one printable line for an error text."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def parts_beneath(path: str, roots: Iterable[Path]) -> Parts:
    """The pieces of `path` relative to the root (ED-02).

    An absolute path is accepted if it lies, piece by piece, inside one of `roots` (several names
    of one directory). This looks at text only: links are the opener's concern.

    Raises PathRefused: empty, NUL, not encodable, `..`, absolute elsewhere, or inside `.git`.
    """
    if not path:
        raise PathRefused("the path is empty: use '.' for the workspace's root")
    shown = printable_path(path)
    if "\0" in path:
        raise PathRefused(f"{shown}: a path can not hold a NUL character")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PathRefused(f"{shown}: the path is not valid Unicode") from None
    pure = PurePosixPath(path)
    if ".." in pure.parts:
        raise PathRefused(f"{shown}: '..' is not allowed: name it from the workspace's root")
    if pure.is_absolute():
        root = next((each for each in roots if pure.is_relative_to(each)), None)
        if root is None:
            raise PathRefused(f"{shown}: outside the workspace: use a path relative to its root")
        pure = pure.relative_to(root)
    refuse_git(pure.parts)
    return pure.parts


def refuse_git(parts: Parts) -> None:
    """Raise PathRefused if one of the pieces is `.git`, however a file system may spell it."""
    # Some file systems fold case, compatibility forms and invisible characters (CVE-2014-9390).
    for part in parts:
        visible = "".join(c for c in part if unicodedata.category(c) != "Cf")
        if unicodedata.normalize("NFKC", visible).casefold().rstrip(". ") == ".git":
            shown = printable_path("/".join(parts))
            raise PathRefused(f"{shown}: git's own files are not to be touched here")


# --- The operating system's errors about a path, in one line that says what to do.

REFUSED = {
    errno.EXDEV: "a link leads out of the workspace",
    errno.ELOOP: "a link that is not followed here: use the path it leads to",
}
UNAVAILABLE = {
    errno.ENOENT: "no such file or directory: list the directory to see what is there",
    errno.ENOTDIR: "a part of the path is not a directory",
    errno.EEXIST: "already exists: edit it, or choose another name",
    errno.EISDIR: "is a directory",
    errno.ENXIO: "is not a regular file",
    errno.EAGAIN: "kept changing while it was opened: try again",
    errno.ENAMETOOLONG: "the name is too long",
}


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn an OSError of the body into a ToolError about `path`."""
    try:
        yield
    except OSError as error:
        raise explanation(error, path) from error


def explanation(error: OSError, path: str) -> ToolError:
    """PathRefused where the name may not be used, else FileUnavailable, FileMissing among them."""
    code = error.errno or 0
    if code in REFUSED:
        return PathRefused(f"{printable_path(path)}: {REFUSED[code]}")
    kind = FileMissing if code == errno.ENOENT else FileUnavailable
    return kind(f"{printable_path(path)}: {UNAVAILABLE.get(code) or os.strerror(code)}")


# --- File name patterns as people write them for coding tools, the same on every Python version.

MOST_ALTERNATIVES: Final = 64


class Glob:
    """A pattern with `*`, `?`, `[...]`, `**` for any directories, and `{a,b}`.

    Without a `/` it is matched against the last part of a path, at any depth.
    """

    def __init__(self, pattern: str) -> None:
        self._choices: list[tuple[str, ...]] = []
        for each in _alternatives(pattern):
            rooted = each.removeprefix("./").removeprefix("/")
            self._choices.append(tuple(rooted.split("/")) if "/" in each else ("**", each))

    def matches(self, path: str) -> bool:
        """Whether a relative path with `/` between its parts fits."""
        parts = tuple(path.split("/"))
        return any(_fits(parts, pieces) for pieces in self._choices)


def _alternatives(pattern: str) -> list[str]:
    waiting, done = [pattern], list[str]()
    while waiting:
        each = waiting.pop(0)
        group = re.search(r"\{([^{}]*,[^{}]*)\}", each)
        if group is None or len(waiting) + len(done) >= MOST_ALTERNATIVES:
            done.append(each)
        else:
            choices = group[1].split(",")
            waiting += [each[: group.start()] + c + each[group.end() :] for c in choices]
    return done


@lru_cache(maxsize=4096)
def _fits(parts: tuple[str, ...], pieces: tuple[str, ...]) -> bool:
    if not pieces:
        return not parts
    if pieces[0] == "**":
        # `dir/**` means what is beneath, so it needs one part more.
        here = bool(parts) if len(pieces) == 1 else _fits(parts, pieces[1:])
        return here or (bool(parts) and _fits(parts[1:], pieces))
    return bool(parts) and fnmatchcase(parts[0], pieces[0]) and _fits(parts[1:], pieces[1:])


# --- What old text files are written in, told by how their bytes follow each other. Pure.
#
# What is certain is that the bytes of what is not edited come back as they were.

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HIGH: Final = re.compile(rb"[\x80-\xff]+")
_PAIR: Final = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
_PAIRS: Final = (
    ("shift_jis", re.compile(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]"), 0.25, 2),  # kana
    ("euc_kr", re.compile(rb"[\xa1-\xa3\xb0-\xc8][\xa1-\xfe]"), 1.0, 10),  # Hangul
    ("gb18030", re.compile(rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]"), 0.8, 2),  # common Chinese
    ("big5", re.compile(rb"[\xa1\xa4-\xc6][\x40-\x7e\xa1-\xfe]"), 0.9, 10),
)
"""Encodings of two bytes a character: their usual pairs, their least share and number."""

_NO_LETTERS: Final = re.compile(rb"[\xa1\xa2\xa4-\xa7\xa9-\xb2\xb4-\xb7\xb9-\xbf]")
"""What Cyrillic text hardly has, and text in pairs has in every line."""


def legacy_encoding(data: bytes) -> str | None:
    """Return the encoding of a text that is no Unicode; None for what is no text, or damaged."""
    text = data.decode(errors="replace")
    broken = text.count("\ufffd")
    sound = sum(each > "\x7f" for each in text) - broken
    if _CONTROL.search(data) or sound >= broken:
        return None
    return next((each for each in _likely(data) if _comes_back(data, each)), None)


def _likely(data: bytes) -> Iterator[str]:
    runs, pairs = _HIGH.findall(data), _PAIR.findall(data)
    for encoding, usual, share, least in _PAIRS:
        number = sum(bool(usual.fullmatch(each)) for each in pairs)
        other = encoding == "shift_jis" or _NO_LETTERS.search(data)
        if other and number >= max(least, share * len(pairs)):
            yield encoding
    high = b"".join(runs)
    if len(high) >= 2 * len(runs):  # words of them, not single letters in words
        rear = sum(each >= 0xE0 for each in high)
        yield "cp1251" if 2 * rear >= len(high) else "koi8_r"
    yield "latin_1" if min(high, default=0) >= 0xA0 else "cp1252"


def _comes_back(data: bytes, encoding: str) -> bool:
    try:
        return data.decode(encoding).encode(encoding) == data
    except UnicodeError:
        return False


# --- Bytes that are text, and back, without losing or guessing anything.

BY_MARK = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's text with its own line ends, and how it is written as bytes."""

    text: str
    mark: bytes = b""
    encoding: str = "utf-8"

    @classmethod
    def of(cls, data: bytes, path: str) -> "TextFile":
        """Read Unicode, or what old files are written in; FileUnavailable for what is no text.

        UTF-16 is known by its byte order mark.
        """
        marked = (each for each in BY_MARK if data.startswith(each[0]))
        mark, encoding = next(marked, (b"", "utf-8"))
        try:
            text = data[len(mark) :].decode(encoding)
        except UnicodeDecodeError as error:
            legacy = None if mark else legacy_encoding(data)
            if legacy is None:
                line = data[: error.start].count(b"\n") + 1
                raise FileUnavailable(
                    f"{printable_path(path)}: neither UTF-8 nor UTF-16 text, nor an older "
                    f"encoding's (byte 0x{data[error.start]:02x} on line {line})"
                ) from None
            return cls(data.decode(legacy), b"", legacy)
        if "\0" in text:
            raise FileUnavailable(f"{printable_path(path)}: a binary file (it holds NUL bytes)")
        return cls(text, mark, encoding)

    def with_text(self, text: str) -> bytes:
        """The bytes of the file if `text` were its text; EditRefused for what text can not hold."""
        if "\0" in text:
            raise EditRefused("the text holds a NUL character, which would make the file binary")
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            if self.is_legacy:
                raise EditRefused(
                    f"the file is written in {self.encoding}, which has no "
                    f"{text[error.start]!r}: say it with characters that it has"
                ) from None
            raise EditRefused(f"the text is not valid Unicode at character {error.start}") from None

    @property
    def is_legacy(self) -> bool:
        """Whether it is written in an encoding that holds a part of Unicode only."""
        return self.encoding not in {encoding for _, encoding in BY_MARK}


# --- What Daruma itself runs from: no tool and no command may write it (SE-05).

_of_servers: dict[Path, str] = {}  # they hold for all of this process, which starts the servers


def add_own(places: Iterable[Path], what: str) -> None:
    """Count files and folders among what is run outside of the sandbox from now on."""
    _of_servers.update({place: what for place in places if place != Path("/")})


def own_in(workspace: Path) -> Mapping[Path, str]:
    """Return the outermost places in a workspace that nobody may write, and what each is.

    Daruma's environment and modules are among them, and the files of MCP servers, wherever they
    lie: also where the environment is the workspace's own, or the workspace is Daruma's checkout.
    """
    found = {place: what for place, what in _own().items() if _lies_in(place, workspace)}
    return {place: what for place, what in found.items() if found.keys().isdisjoint(place.parents)}


def own_around(workspace: Path) -> str:
    """Say why a workspace can not be written at all; empty where it can be.

    It is a part of what Daruma runs from, or the way there leads through one of its links.
    """
    for place, what in _own().items():
        if workspace.is_relative_to(place) and place not in _prefixes():
            return f"it lies in {place}, which is {what}"
        if _lies_in(place, workspace) and Path(os.path.realpath(place)) != place:
            return f"{what} is reached through a link in it, {place}"
    return ""


def refuse_own(root: Path, location: Parts) -> None:
    """Raise PathRefused for a place in a workspace that is part of what Daruma runs from."""
    at = root.joinpath(*location)
    for place, what in _own().items():
        if at.is_relative_to(place) and not (place in _prefixes() and root.is_relative_to(place)):
            shown = printable_path("/".join(location))
            raise PathRefused(f"{shown}: is part of {what}: it can not be edited")


def _lies_in(place: Path, workspace: Path) -> bool:
    return place != workspace and place.is_relative_to(workspace)


def _own() -> Mapping[Path, str]:
    return {**_program(sys.prefix, sys.executable), **_of_servers}


def _prefixes() -> set[Path]:
    """Return what may hold more than the environment, such as /usr: a workspace can lie there."""
    return {each for given in (sys.prefix, sys.base_prefix) for each in _both(given)} - {Path("/")}


@lru_cache(maxsize=4)
def _program(prefix: str, executable: str) -> Mapping[Path, str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    found = [sysconfig.get_path(name) for name in names]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    found += [str(Path(executable).parent), str(Path(prefix) / "pyvenv.cfg")]
    if package := daruma.__file__:
        inside = Path(package).parent
        folders = [each for each in inside.iterdir() if each.is_dir()]
        found += [str(inside), *map(os.path.realpath, folders)]
        found += [str(inside.parent)] if inside.parent.name.startswith(".") else []
    places = {place for each in found if each for place in _both(each)} | _prefixes()
    places = {place for place in places if place.exists()} - {Path("/")}
    return MappingProxyType(dict.fromkeys(sorted(places), "Daruma's own program"))


def _both(path: str) -> tuple[Path, Path]:
    return Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 - links stay
