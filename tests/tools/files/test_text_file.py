"""Text is read without guessing and written back byte for byte."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.tools.errors import EditRefused, FileUnavailable
from daruma.tools.files.paths import TextFile

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
        (b"caf\xe9", "neither UTF-8 nor UTF-16"),
        ("text".encode("utf-16-le"), "binary"),
        (codecs.BOM_UTF16_LE + b"a", "neither UTF-8 nor UTF-16"),
        ("text".encode("utf-32"), "binary"),
        (b"\x89PNG\r\n\x1a\n\0", "neither"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, reason: str) -> None:
    """Binary and other encodings are named, never guessed (ED-03)."""
    with pytest.raises(FileUnavailable, match=reason):
        TextFile.of(data, "f")


@pytest.mark.parametrize("text", ["a\0", "a\ud800"])
def test_text_that_no_text_file_can_hold_is_refused(text: str) -> None:
    """NUL and lone surrogates are not written: the file could not be read again."""
    with pytest.raises(EditRefused):
        TextFile("").with_text(text)
