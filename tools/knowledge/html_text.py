"""The text of an HTML page: headings and paragraphs, without what only a browser is for. Pure."""

from html.parser import HTMLParser
from typing import Final

from typing_extensions import override

_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg", "nav"})
_APART: Final = """
    address article aside blockquote br dd div dl dt footer form header hr li main ol p pre section
    table td th title tr ul
"""
_BLOCKS: Final = frozenset(_APART.split())
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def html_text(page: str) -> str:
    """Return the text of a page, with its headings as Markdown has them.

    >>> html_text("<h1>A</h1><p>one<br>two<script>x</script></p>")
    '# A\\n\\none\\ntwo'
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._unseen = 0

    @property
    def text(self) -> str:
        lines = [" ".join(line.split()) for line in "".join(self._parts).split("\n")]
        kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
        return "\n".join(kept).strip()

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN
        if tag in _HEADINGS:
            self._parts.append(f"\n\n{_HEADINGS[tag]}")
        elif tag in _BLOCKS:
            self._parts.append("\n" if tag == "br" else "\n\n")

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSEEN and self._unseen:
            self._unseen -= 1
        if tag in _HEADINGS or tag in _BLOCKS:
            self._parts.append("\n\n")

    @override
    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._parts.append(" ".join(data.split("\n")))
