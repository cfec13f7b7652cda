"""The machine as an SVG picture, for pages, notebooks and files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from daruma.graph.machine import ON_BUG, TABLE
from daruma.graph.timeline.drawing import (
    BEGINNING,
    BOXES,
    EITHER,
    ENDING,
    HEIGHT,
    LINE,
    WIDTH,
    Box,
    Curve,
    Edge,
    drawing,
    label_lines,
    most_bugs_lead_to,
)

# --- The style sheets, as they lie beside this file: each scoped to classes of its own.


@cache
def style(*names: str) -> str:
    """Return style sheets as one text."""
    return "".join(asset(f"{name}.css") for name in names)


@cache
def asset(name: str) -> str:
    """Return a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


# --- The machine as an SVG picture: drawn here, with nothing from the network.

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


# --- The picture of the machine, as notebooks and files take it.


@dataclass(frozen=True)
class Picture:
    """The machine; nodes and edges with a count were walked, and are lit."""

    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def svg(self) -> str:
        """The picture as SVG, with its own style in it."""
        return machine_svg(self.nodes, self.edges)

    def save(self, path: str | Path) -> Path:
        """Write it to a file, and return its path."""
        Path(path).write_text(self.svg, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.svg, "text/plain": str(self)}

    def __str__(self) -> str:
        """Return the walked edges as lines, or say that there are none."""
        lines = (f"{one} -> {other}: {count}" for (one, other), count in self.edges.items())
        return "\n".join(lines) or "the machine of Daruma"
