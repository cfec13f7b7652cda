"""The machine as an SVG picture: drawn here, with nothing from the network."""

from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import escape

from daruma.graph.machine import ON_BUG, TABLE
from daruma.graph.pictures.curves import Curve
from daruma.graph.pictures.drawing import drawing
from daruma.graph.pictures.edges import (
    BEGINNING,
    EITHER,
    ENDING,
    Edge,
    most_bugs_lead_to,
)
from daruma.graph.pictures.labels import LINE, label_lines
from daruma.graph.pictures.layout import BOXES, HEIGHT, WIDTH, Box
from daruma.graph.pictures.style import style

STYLE: Final = style("colours", "machine")

_HUMAN: Final = frozenset({"spec_review", "gate", "clarify", "consult", "pause", "hold"})
"""Nodes that may wait for a person."""


def machine_svg(
    nodes: Mapping[str, int] | None = None, walked: Mapping[tuple[str, str], int] | None = None
) -> str:
    """Return the machine; with counts of nodes and edges, those that were walked are lit."""
    nodes, walked = nodes or {}, walked or {}
    lit = bool(nodes)
    parts = [
        (
            f'<svg class="daruma daruma-machine" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{_described(nodes)}">'
        ),
        f"<style>{STYLE}</style>",
        _frame(),
        *sorted((_edge(curve, walked, lit=lit) for curve in drawing().curves), key=_lit_last),
        *(_node(name, box, nodes, lit=lit) for name, box in BOXES.items() if name != EITHER),
        *sorted((_label(curve.edge, walked, lit=lit) for curve in drawing().curves), key=_lit_last),
        *_foot(),
        "</svg>",
    ]
    return "".join(parts)


def _described(nodes: Mapping[str, int]) -> str:
    told = ", ".join(f"{name} {count} times" for name, count in nodes.items() if name in TABLE)
    return f"The machine; walked: {told}" if told else "The machine: its nodes and their outcomes"


def _lit_last(part: str) -> bool:
    return part.startswith('<g class="lit')


def _frame() -> str:
    return _rect(BOXES[EITHER], "either", 12)


def _rect(box: Box, kind: str, radius: float) -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="{radius:g}"/>'
    )


def taken(edge: Edge, walked: Mapping[tuple[str, str], int]) -> int:
    """Return how often an edge was walked, from any of the nodes that it stands for."""
    own = sum(walked.get((source, edge.target), 0) for source in edge.sources)
    return own or int(edge.source == BEGINNING and bool(walked))


def _edge(curve: Curve, walked: Mapping[tuple[str, str], int], *, lit: bool) -> str:
    edge, times = curve.edge, taken(curve.edge, walked)
    kind = "bug" if edge.bug else "each" if edge.each else "step"
    state = "lit" if times and not edge.bug else "faded" if lit else "plain"
    title = f"{edge.source} → {edge.target}: {edge.label or 'begins'}"
    told = f"{title}, {times} times" if times else title
    return (
        f'<g class="{state}"><title>{escape(told)}</title>'
        f'<path class="line {kind}" d="{curve.path}"/>{_head(curve)}</g>'
    )


def _head(curve: Curve) -> str:
    (cx, cy), (x, y) = curve.points[2], curve.points[3]
    length = max(((x - cx) ** 2 + (y - cy) ** 2) ** 0.5, 0.01)
    ux, uy = (x - cx) / length, (y - cy) / length
    tip = (x + ux * 5, y + uy * 5)
    left = (x - ux * 3 - uy * 4, y - uy * 3 + ux * 4)
    right = (x - ux * 3 + uy * 4, y - uy * 3 - ux * 4)
    points = "L".join(f"{px:.1f} {py:.1f}" for px, py in (tip, left, right))
    return f'<path class="head" d="M{points}Z"/>'


def _label(edge: Edge, walked: Mapping[tuple[str, str], int], *, lit: bool) -> str:
    box, lines = drawing().labels.get(edge), label_lines(edge)
    if box is None:
        return ""
    times = 0 if edge.bug else taken(edge, walked)
    state = "lit" if times else "faded" if lit else "plain"
    top = box.y - (len(lines) - 1) * LINE / 2
    counted = [*lines[:-1], f"{lines[-1]} ×{times}" if times else lines[-1]]
    texts = (
        f'<text class="label" x="{box.x:.1f}" y="{top + number * LINE:.1f}">{escape(line)}</text>'
        for number, line in enumerate(counted)
    )
    return f'<g class="{state}">{"".join(texts)}</g>'


def _node(name: str, box: Box, nodes: Mapping[str, int], *, lit: bool) -> str:
    times = nodes.get(name, 0)
    walked = times or (lit and name == BEGINNING) or (name == ENDING and nodes.get("finish"))
    human = " human" if name in _HUMAN else ""
    state = "lit" if walked else "faded" if lit else "plain"
    radius = 13 if name in (BEGINNING, ENDING) else 7
    up = 6 if times else 0
    count = f'<text class="count" x="{box.x:g}" y="{box.y + 9:g}">×{times}</text>' if times else ""
    text = f'<text class="name" x="{box.x:g}" y="{box.y - up:g}">{escape(name)}</text>'
    return f'<g class="{state}{human}">{_rect(box, "node", radius)}{text}{count}</g>'


def _foot() -> Iterator[str]:
    lines = ["thick: once for each call or member", "dotted: a bug, by its handler"]
    for target in most_bugs_lead_to():
        names = [name for name, to in ON_BUG.items() if to == target]
        told = "in a phase" if "main" in names else "elsewhere"
        lines.append(f"a bug {told} leads to {target}")
    for number, line in enumerate(lines):
        y = HEIGHT - 60 + number * 15
        yield f'<text class="foot" x="650" y="{y}">{escape(line)}</text>'
