"""A unified diff as coloured HTML; the signs stay, so that nothing rests on colour alone."""

from typing import Final

from daruma.graph.pictures.safe_text import safe_block

_KINDS: Final = {"+": "plus", "-": "minus", "@": "place"}


def diff_html(diff: str, limit: int = 4000, whole: str = "") -> str:
    """Return a diff as HTML. ``limit`` is in characters; ``whole`` says where the rest of it is."""
    lines = safe_block(diff, limit, whole).split("\n")
    return f'<pre class="diff" dir="ltr">{chr(10).join(map(_line, lines))}</pre>'


def _line(line: str) -> str:
    kind = _KINDS.get(line[:1])
    return f'<span class="{kind}">{line}</span>' if kind else line
