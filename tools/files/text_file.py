"""Bytes that are text, and back, without losing or guessing anything."""

import codecs
from dataclasses import dataclass

from daruma.tools.errors import EditRefused, FileUnavailable
from daruma.tools.files.paths import shown

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
        """Read UTF-8, or UTF-16 with a byte order mark; FileUnavailable for everything else."""
        mark, encoding = next(
            (each for each in BY_MARK if data.startswith(each[0])), (b"", "utf-8")
        )
        try:
            text = data[len(mark) :].decode(encoding)
        except UnicodeDecodeError:
            raise FileUnavailable(f"{shown(path)}: neither UTF-8 nor UTF-16 text") from None
        if "\0" in text:
            raise FileUnavailable(f"{shown(path)}: a binary file (it holds NUL bytes)")
        return cls(text, mark, encoding)

    def with_text(self, text: str) -> bytes:
        """The bytes of the file if `text` were its text; EditRefused for what text can not hold."""
        if "\0" in text:
            raise EditRefused("the text holds a NUL character, which would make the file binary")
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise EditRefused(f"the text is not valid Unicode at character {error.start}") from None
