"""One moment of a run as a row of HTML, which opens where there is more to it."""

from datetime import datetime
from typing import Final

from daruma.graph.durations import duration_if_any
from daruma.graph.pictures.diff_html import diff_html
from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.safe_text import safe_block, safe_line

_MARKS: Final = {
    None: '<span class="mark"></span>',
    True: '<span class="mark good" role="img" aria-label="ok">✓</span>',
    False: '<span class="mark bad" role="img" aria-label="failed">✗</span>',
}


def moment_html(moment: Moment, limit: int, whole: str = "") -> str:
    """Return a list item. ``limit`` bounds each text; ``whole`` says where they are whole."""
    more = _more(moment, limit, whole)
    row = _row(moment)
    if not more:
        return f'<li class="k-{moment.kind}"><div class="row">{row}</div></li>'
    return (
        f'<li class="k-{moment.kind}"><details><summary class="row">{row}</summary>'
        f'<div class="more">{more}</div></details></li>'
    )


def _row(moment: Moment) -> str:
    at = datetime.fromtimestamp(moment.at).astimezone() if moment.at else None
    clock = f'<time datetime="{at.isoformat()}">{at:%H:%M:%S}</time>' if at else "<time></time>"
    return (
        f'{clock}<span class="kind">{moment.kind}</span>{_MARKS[moment.ok]}'
        f'<span class="title" dir="auto">{safe_line(moment.title)}</span>'
        f'<span class="meta">{safe_line(_meta(moment))}</span>'
    )


def _meta(moment: Moment) -> str:
    told = (
        f"[{moment.member}]" if moment.member else "",
        moment.model,
        f"{moment.tokens:,} tokens" if moment.tokens else "",
        f"${moment.usd:.4f}" if moment.usd else "",
        duration_if_any(moment.seconds),
    )
    return " · ".join(each for each in told if each)


def _more(moment: Moment, limit: int, whole: str) -> str:
    detail = moment.detail if moment.detail.strip() != moment.title.strip() else ""
    long_title = len(moment.title) > 200
    parts = [
        f'<p class="note">{safe_line(moment.note, 500)}</p>' if moment.note else "",
        _pre(moment.title, limit, whole) if long_title and not detail else "",
        _pre(detail, limit, f"{whole}.detail"),
        diff_html(moment.diff, limit, f"{whole}.diff") if moment.diff else "",
        _pre(moment.output, limit, f"{whole}.output"),
    ]
    return "".join(parts)


def _pre(text: str, limit: int, whole: str) -> str:
    return f'<pre dir="auto">{safe_block(text, limit, whole)}</pre>' if text.strip() else ""
