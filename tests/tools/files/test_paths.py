"""A path's text is judged before anything is opened."""

import codecs
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.tools.errors import EditRefused, FileUnavailable, PathRefused
from daruma.tools.files import Glob, TextFile, parts_beneath, printable_path

ROOT = Path("/ws")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a/b.py", ("a", "b.py")),
        ("./a//b.py/", ("a", "b.py")),
        (".", ()),
        ("/ws", ()),
        ("/ws/a/b.py", ("a", "b.py")),
        (".gitignore", (".gitignore",)),
        ("x.git/.github/file", ("x.git", ".github", "file")),
        ("..a/b..", ("..a", "b..")),
    ],
)
def test_a_path_inside_is_made_relative(path: str, parts: tuple[str, ...]) -> None:
    """Relative paths, and absolute ones that lie inside by their pieces, are accepted (ED-02)."""
    assert parts_beneath(path, [ROOT]) == parts


@pytest.mark.parametrize(
    "path",
    [
        "",
        "..",
        "a/../b",
        "a/../../etc/passwd",
        "/etc/passwd",
        "/",
        "/ws_evil/a",
        "/ws/../etc/passwd",
        "//ws/a",
        "a\0b",
        "a\udc80b",
        ".git",
        ".git/config",
        "a/.git/hooks/pre-commit",
        ".GIT/config",
        ".g\u200cit/config",
        "\uff0egit/config",
        ".git./config",
    ],
)
def test_a_path_that_may_not_be_used_is_refused(path: str) -> None:
    """Traversal, absolute paths, prefix twins, unusable names and git's files (ED-02)."""
    with pytest.raises(PathRefused):
        parts_beneath(path, [ROOT])


def test_every_name_of_the_root_is_accepted() -> None:
    """A root reached through a link has two names. An error shows any path as one short line."""
    assert parts_beneath("/link/a", [ROOT, Path("/link")]) == ("a",)
    assert printable_path("a\nb") == r"'a\nb'"
    assert len(printable_path("a" * 5000)) < 300


# --- Patterns for file names mean what people expect of coding tools.


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("src/**", "src/x/y", True),
        ("src/**", "src", False),
        ("./src/?.py", "src/a.py", True),
        ("*.{ts,tsx}", "x/a.tsx", True),
        ("*.{ts,tsx}", "x/a.js", False),
        ("{a,b}/{c,d}.py", "b/c.py", True),
        ("[ab].py", "b.py", True),
        ("*.PY", "a.py", False),
        ("**/" * 40 + "x", "a/" * 40 + "b", False),
        ("{a,b}" * 40, "c", False),
    ],
)
def test_a_pattern_fits_whole_paths(pattern: str, path: str, fits: bool) -> None:
    """Every kind of wildcard, with and without directories; none runs for ever."""
    assert Glob(pattern).matches(path) is fits


# --- Text is read without guessing and written back byte for byte.

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ENCODINGS = [
    (b"", "utf-8"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]


@settings(deadline=None)
@given(TEXT.filter(lambda text: not text.startswith("\ufeff")), st.sampled_from(ENCODINGS))
def test_every_text_comes_back_as_it_was(text: str, how: tuple[bytes, str]) -> None:
    """Byte order mark, encoding and line ends survive reading and writing (ED-03)."""
    mark, encoding = how
    data = mark + text.encode(encoding)
    file = TextFile.of(data, "f")

    assert file.text == text
    assert file.with_text(file.text) == data


@settings(deadline=None)
@given(st.binary())
def test_bytes_are_refused_or_kept(data: bytes) -> None:
    """Whatever the bytes: either a clear refusal, or exactly the same bytes again."""
    try:
        file = TextFile.of(data, "f")
    except FileUnavailable:
        return

    assert file.with_text(file.text) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\0b", "binary"),
        ("ein Wort für Bücher".encode() + b"\xe9", "neither UTF-8 nor UTF-16"),
        (b"\x89PNG\r\n\x1a\n\xff", "byte 0x89 on line 1"),
        ("text".encode("utf-16-le"), "binary"),
        (codecs.BOM_UTF16_LE + b"a", "neither UTF-8 nor UTF-16"),
        ("text".encode("utf-32"), "binary"),
        (b"\x89PNG\r\n\x1a\n\0", "neither"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, reason: str) -> None:
    """Binary and other encodings are named, never guessed (ED-03); nor is any written."""
    with pytest.raises(FileUnavailable, match=reason):
        TextFile.of(data, "f")
    for text in ("a\0", "a\ud800"):
        with pytest.raises(EditRefused):
            TextFile("").with_text(text)
