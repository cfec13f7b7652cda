"""A run as one HTML file: it asks nothing of the network, and obeys nothing that it shows."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from daruma.graph.pictures.head_html import head_html
from daruma.graph.pictures.lanes import Lane, lanes_of
from daruma.graph.pictures.machine_svg import machine_svg
from daruma.graph.pictures.moment import KINDS
from daruma.graph.pictures.moment_html import moment_html
from daruma.graph.pictures.safe_text import safe_line
from daruma.graph.pictures.style import asset, style
from daruma.graph.pictures.timeline import Timeline
from daruma.graph.pictures.visit import edges_walked, nodes_walked

MOST_TEXT: Final = 3_000_000
"""Characters of outputs and details on a page, all together."""
_LEAST, _MOST = 300, 4000
"""Characters of one text."""


def page_of(timeline: Timeline) -> str:
    """Return the whole page. Its size is bounded: long texts are cut, and say where they go on."""
    styles = style("colours", "page")
    script = asset("page.js")
    picture = machine_svg(nodes_walked(timeline.path), edges_walked(timeline.path))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; "
        f"style-src {_hash(styles)} {_hash(style('colours', 'machine'))}"
    )
    parts = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="generator" content="daruma"><meta name="referrer" content="no-referrer">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{safe_line(timeline.thread)}: {safe_line(timeline.status)}</title>",
        f'<style>{styles}</style></head><body class="daruma daruma-run">',
        head_html(timeline, level=1),
        "<main><section><h2>The walk through the machine</h2>",
        "" if timeline.whole else "<p>What came before was thinned away.</p>",
        picture,
        "</section><section><h2>What happened</h2>",
        _filters(timeline),
        f'<div id="timeline">{"".join(_lanes(timeline))}</div></section></main>',
        f"<script>{script}</script></body></html>\n",
    )
    return "".join(parts)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _filters(timeline: Timeline) -> str:
    counted = Counter(each.kind for each in timeline.moments)
    buttons = "".join(
        f'<button type="button" data-kind="{kind}" aria-pressed="true">{kind} {counted[kind]}'
        "</button>"
        for kind in KINDS
        if counted[kind]
    )
    search = (
        '<input id="search" type="search" placeholder="Search" aria-label="Search the timeline">'
    )
    return (
        f'<div class="filters" role="group" aria-label="Kinds that are shown">{buttons}{search}'
        '<span id="found" role="status"></span></div>'
    )


def _lanes(timeline: Timeline) -> Iterator[str]:
    limit = max(_LEAST, min(_MOST, MOST_TEXT // (2 * max(len(timeline.moments), 1))))
    for lane in lanes_of(timeline):
        yield _lane(lane, limit)
    if not timeline.moments:
        yield "<p>Nothing has happened yet.</p>"


def _lane(lane: Lane, limit: int) -> str:
    title = f"<h3>{safe_line(lane.title)}</h3>" if lane.title else ""
    items = (
        moment_html(moment, limit, f"graph.timeline(config).moments[{number}]")
        for number, moment in lane.moments
    )
    return f'<section class="lane">{title}<ol>{"".join(items)}</ol></section>'
