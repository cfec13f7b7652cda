"""Draws the picture of the machine that ships: ``python docs/draw_machine.py``.

Routes and labels are kept beside this file, in ``machine_drawing.json``: ``--choose`` chooses them
anew for a machine that has changed, which takes a minute, and they may be mended by hand. The tests
say what must hold. What is drawn is lit by ``graph/timeline/_timeline.py``.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from langgraph.constants import END

import daruma.graph
from daruma.graph.machine import ENTRY, ON_BUG, RECOVERED, TABLE, Each, node_of

# --- The edges of the machine, read off its table: one for each pair of nodes.

BEGINNING: Final = "start"
ENDING: Final = "end"
EITHER: Final = "recovery or consult"
"""Stands for both where they lead to the same: what is done about a failure (``RECOVERED``)."""


@dataclass(frozen=True)
class Edge:
    """From one node to another. ``each`` is entered once for every item, ``bug`` by handlers only.

    ``sources`` are the nodes that it stands for.
    """

    source: str
    target: str
    outcomes: tuple[str, ...] = ()
    each: bool = False
    bug: bool = False

    @property
    def label(self) -> str:
        """The outcomes, on one line."""
        return "bug" if self.bug else ", ".join(self.outcomes)

    @property
    def sources(self) -> tuple[str, ...]:
        """The nodes that it begins at."""
        return ("recovery", "consult") if self.source == EITHER else (self.source,)


def edges() -> tuple[Edge, ...]:
    """Return all edges, those of error handlers last."""
    return (Edge(BEGINNING, ENTRY), *_steps(), *_bugs())


def _steps() -> Iterator[Edge]:
    for name, (_, outcomes) in TABLE.items():
        if name == "consult":
            continue  # it leads where recovery does
        by_target: dict[str, list[str]] = {}
        for outcome, target in outcomes.items():
            by_target.setdefault(_end(node_of(target)), []).append(outcome)
        sent = {node_of(target) for target in outcomes.values() if isinstance(target, Each)}
        for target, labels in by_target.items():
            both = name == "recovery" and {*labels} <= RECOVERED.keys()
            yield Edge(EITHER if both else name, target, tuple(labels), target in sent)


def _bugs() -> Iterator[Edge]:
    """Yield the edges that only handlers take, but for where most lead: that is told in words."""
    most = most_bugs_lead_to()
    for name, target in ON_BUG.items():
        if target not in most:
            yield Edge(name, _end(target), bug=True)


def most_bugs_lead_to() -> tuple[str, ...]:
    """Return where the bugs of several nodes lead."""
    targets = [*ON_BUG.values()]
    return tuple(sorted({target for target in targets if targets.count(target) > 1}))


def _end(target: str) -> str:
    return ENDING if target == END else target


# --- Where each node stands in the picture: chosen by eye, so that related ones stand together.

WIDTH: Final = 900
HEIGHT: Final = 800
_NODE: Final = (104.0, 34.0)
_END: Final = (52.0, 26.0)


class Box(NamedTuple):
    """A rectangle by its middle and its sizes, in pixels."""

    x: float
    y: float
    width: float
    height: float

    def grown(self, by: float) -> "Box":
        """Return it with a margin on every side."""
        return Box(self.x, self.y, self.width + 2 * by, self.height + 2 * by)

    def meets(self, other: "Box") -> bool:
        """Whether they overlap."""
        return (
            abs(self.x - other.x) * 2 < self.width + other.width
            and abs(self.y - other.y) * 2 < self.height + other.height
        )

    def holds(self, x: float, y: float) -> bool:
        """Whether a point is within."""
        return abs(x - self.x) * 2 < self.width and abs(y - self.y) * 2 < self.height


_PLACES: Final[dict[str, tuple[float, float]]] = {
    "intake": (450, 95),
    "spec_review": (115, 200),
    "look": (200, 85),
    "plan": (285, 200),
    "compress": (610, 160),
    "repair": (795, 220),
    "member": (115, 330),
    "begin": (268, 330),
    "main": (450, 300),
    "tool": (640, 300),
    "gate": (800, 380),
    "clarify": (640, 395),
    "pause": (620, 478),
    "merge": (115, 450),
    "delegate": (730, 150),
    "reflect": (450, 430),
    "verify": (450, 530),
    "settle": (268, 545),
    "recovery": (640, 560),
    "consult": (790, 560),
    "rollback": (115, 600),
    "structure": (410, 622),
    "emergency": (600, 690),
    "finish": (330, 710),
    "hold": (115, 710),
}

BOXES: Final[dict[str, Box]] = {
    BEGINNING: Box(450, 30, *_END),
    ENDING: Box(330, 775, *_END),
    **{name: Box(*place, *_NODE) for name, place in _PLACES.items()},
    EITHER: Box(715, 560, 280, 58),
}
"""Every node, and the frame around those that lead to the same."""


# --- Choosing routes for edges: of many curves, the one that runs through no node and crosses
# least.
#
# It takes seconds, so what was chosen is kept.

Point = tuple[float, float]

_SIDES: Final[dict[str, Point]] = {"n": (0, -1), "s": (0, 1), "w": (-1, 0), "e": (1, 0)}
_PORTS: Final = (-0.3, 0.0, 0.3)
"""Where along a side an edge may begin or end, in parts of its length."""
_SAMPLES: Final = 20
_THROUGH_NODE, _CROSSING, _SAME_PORT, _OUTSIDE = 400.0, 28.0, 120.0, 1000.0


Points = tuple[Point, Point, Point, Point]


class Curve(NamedTuple):
    """A cubic Bézier curve, points along it, and its least and most coordinates."""

    edge: Edge
    points: Points
    samples: tuple[Point, ...]
    least: Point
    most: Point

    @property
    def path(self) -> str:
        """The curve as SVG says it."""
        a, b, c, d = (f"{x:.1f} {y:.1f}" for x, y in self.points)
        return f"M{a}C{b} {c} {d}"

    def at(self, t: float) -> Point:
        """Return the point at ``t``, from 0 at the beginning to 1 at the end."""
        return _bezier(self.points, t)


def chosen_curves(sweeps: int = 3) -> tuple[Curve, ...]:
    """Return a curve for each edge: the short ones first, then each again beside all others."""
    chosen = dict[Edge, Curve]()
    for _ in range(sweeps):
        for edge in sorted(edges(), key=_distance):
            others = [curve for each, curve in chosen.items() if each != edge]
            chosen[edge] = min(_candidates(edge), key=lambda curve: _cost(curve, others))
    return tuple(chosen[edge] for edge in edges())


def _distance(edge: Edge) -> float:
    a, b = BOXES[edge.source], BOXES[edge.target]
    return abs(a.x - b.x) + abs(a.y - b.y)


def _candidates(edge: Edge) -> Iterator[Curve]:
    source, target = BOXES[edge.source], BOXES[edge.target]
    if edge.source == edge.target:
        yield from (_loop(edge, source, side) for side in _SIDES)
        return
    far = _distance(edge)
    for (out, into), p, q, bend in product(
        product(_SIDES.values(), repeat=2), _PORTS, _PORTS, (0.22, 0.36, 0.55)
    ):
        reach = max(26.0, far * bend)
        yield _curve(edge, _port(source, out, p), out, _port(target, into, q), into, reach)


def _loop(edge: Edge, box: Box, side: str) -> Curve:
    out = _SIDES[side]
    along = (abs(out[1]) * 16, abs(out[0]) * 10)
    x, y = _port(box, out, 0)
    a, d = (x - along[0], y - along[1]), (x + along[0], y + along[1])
    b = (a[0] + out[0] * 38 - along[0] / 2, a[1] + out[1] * 38 - along[1] / 2)
    c = (d[0] + out[0] * 38 + along[0] / 2, d[1] + out[1] * 38 + along[1] / 2)
    return curve_of(edge, (a, b, c, d))


def _port(box: Box, side: Point, part: float) -> Point:
    x = box.x + side[0] * box.width / 2 + abs(side[1]) * part * box.width
    y = box.y + side[1] * box.height / 2 + abs(side[0]) * part * box.height
    return x, y


def _curve(edge: Edge, a: Point, out: Point, d: Point, into: Point, reach: float) -> Curve:
    end = (d[0] + into[0] * 5, d[1] + into[1] * 5)  # room for the arrow's head
    b = (a[0] + out[0] * reach, a[1] + out[1] * reach)
    c = (end[0] + into[0] * reach, end[1] + into[1] * reach)
    return curve_of(edge, (a, b, c, end))


def curve_of(edge: Edge, points: Points) -> Curve:
    """Return the curve of an edge by its four points."""
    samples = tuple(_bezier(points, n / _SAMPLES) for n in range(_SAMPLES + 1))
    xs, ys = [x for x, _ in samples], [y for _, y in samples]
    return Curve(edge, points, samples, (min(xs), min(ys)), (max(xs), max(ys)))


def _bezier(points: Sequence[Point], t: float) -> Point:
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = points
    u = 1 - t
    weights = (u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t)
    x = weights[0] * ax + weights[1] * bx + weights[2] * cx + weights[3] * dx
    y = weights[0] * ay + weights[1] * by + weights[2] * cy + weights[3] * dy
    return x, y


def _cost(curve: Curve, known: Iterable[Curve]) -> float:
    length = sum(abs(x - u) + abs(y - v) for (x, y), (u, v) in pairwise(curve.samples))
    outside = any(not (8 < x < WIDTH - 8 and 8 < y < HEIGHT - 8) for x, y in curve.samples)
    own = {curve.edge.source, curve.edge.target}
    own |= {EITHER} if own & {"recovery", "consult"} else set()
    own |= {"recovery", "consult"} if EITHER in own else set()
    inner = curve.samples[1:-1]
    through = sum(box.holds(x, y) for name, box in _OBSTACLES if name not in own for x, y in inner)
    through += sum(BOXES[name].holds(x, y) for name in own - {EITHER} for x, y in inner)
    cost = length + through * _THROUGH_NODE + outside * _OUTSIDE
    for other in known:
        if _near(curve, other):
            cost += _CROSSING * _crossings(curve.samples[::2], other.samples[::2])
            cost += _SAME_PORT * _shared_ports(curve, other)
    return cost


def _shared_ports(one: Curve, other: Curve) -> int:
    return sum(
        abs(x - u) + abs(y - v) < 9
        for x, y in (one.points[0], one.points[3])
        for u, v in (other.points[0], other.points[3])
    )


_OBSTACLES: Final = tuple(
    (name, box.grown(-2 if name == EITHER else 6)) for name, box in BOXES.items()
)


def _crossings(one: Sequence[Point], other: Sequence[Point]) -> int:
    return sum(_cross(a, b, c, d) for a, b in pairwise(one) for c, d in pairwise(other))


def _near(one: Curve, other: Curve) -> bool:
    return all(
        one.least[axis] - 9 <= other.most[axis] and other.least[axis] - 9 <= one.most[axis]
        for axis in (0, 1)
    )


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    return _turn(a, b, c) != _turn(a, b, d) and _turn(c, d, a) != _turn(c, d, b)


def _turn(a: Point, b: Point, c: Point) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])


# --- Places for the outcomes on their edges: none over a node, none over another.

LETTER: Final = 5.6
"""Pixels that a letter of a label is wide, on average."""
LINE: Final = 12.0
_LONGEST: Final = 20
"""Letters on a line."""
_COUNT: Final = 3
"""Letters that are kept free for how often an edge was walked."""
_ALONG: Final = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8, 0.14, 0.86)
_ASIDE: Final = ((0, 0), (0, -9), (0, 9), (14, 0), (-14, 0), (0, -18), (0, 18), (30, 0), (-30, 0))


def chosen_labels(curves: Sequence[Curve]) -> dict[Edge, Box]:
    """Return for each edge that says something the box of its label, with room for a count."""
    taken = [box for name, box in BOXES.items() if name != EITHER]
    placed = dict[Edge, Box]()
    for curve in sorted(curves, key=_length):
        if lines := label_lines(curve.edge):
            placed[curve.edge] = _free(curve, lines, taken, curves)
            taken.append(placed[curve.edge])
    return placed


def _length(curve: Curve) -> float:
    return sum(most - least for most, least in zip(curve.most, curve.least, strict=True))


def label_lines(edge: Edge) -> tuple[str, ...]:
    """Return the outcomes of an edge on lines that are not too long."""
    lines = [""]
    for word in edge.label.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if len(longer) <= _LONGEST else [*lines, word]
    return tuple(line for line in lines if line)


def _free(curve: Curve, lines: Sequence[str], taken: Sequence[Box], curves: Sequence[Curve]) -> Box:
    width = max(*(len(line) for line in lines), len(lines[-1]) + _COUNT) * LETTER
    found = list[tuple[float, Box]]()
    for aside in _ASIDE:
        for t in _ALONG:
            x, y = curve.at(t)
            box = Box(x + aside[0], y + aside[1], width, len(lines) * LINE)
            found.append((_label_cost(box, taken, aside) + _crossed(box, curve, curves), box))
            if found[-1][0] == 0:
                return box
    return min(found)[1]


def _label_cost(box: Box, taken: Sequence[Box], aside: tuple[int, int]) -> float:
    outside = abs(box.x - WIDTH / 2) * 2 > WIDTH - box.width or not 8 < box.y < HEIGHT - 8
    over = sum(box.grown(1.5).meets(other) for other in taken)
    return 1000 * (over + outside) + (abs(aside[0]) + abs(aside[1])) / 10


def _crossed(box: Box, own: Curve, curves: Sequence[Curve]) -> float:
    crossed = (any(box.holds(x, y) for x, y in each.samples) for each in curves if each != own)
    return 10.0 * sum(crossed)


# --- The drawing of the machine: routes and labels as they were chosen, kept beside this file.

KEPT: Final = Path(__file__).with_name("machine_drawing.json")


@dataclass(frozen=True)
class Drawing:
    """A curve for each edge, and a box for each label."""

    curves: tuple[Curve, ...]
    labels: dict[Edge, Box]


@cache
def drawing() -> Drawing:
    """Return what is kept; an edge that it does not know is left out, which a test would notice."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    known = {_key(edge): edge for edge in edges()}
    curves = (
        curve_of(known[key], _points(each["curve"])) for key, each in kept.items() if key in known
    )
    labels = {
        known[key]: Box(*each["label"])
        for key, each in kept.items()
        if key in known and each["label"]
    }
    return Drawing(tuple(curves), labels)


def choose() -> None:
    """Choose routes and labels, and keep them."""
    curves = chosen_curves()
    labels = chosen_labels(curves)
    kept = {
        _key(each.edge): {
            "curve": [[round(value, 1) for value in point] for point in each.points],
            "label": [round(value, 1) for value in labels.get(each.edge, ())],
        }
        for each in curves
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in kept.items())
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _key(edge: Edge) -> str:
    return f"{edge.source} -> {edge.target}{' (bug)' if edge.bug else ''}"


def _points(given: list[list[float]]) -> Any:
    return tuple((x, y) for x, y in given)


# --- The picture as SVG: a line of the file for each part, named by what it shows.

SHIPPED: Final = Path(str(daruma.graph.__file__)).with_name("timeline") / "machine.svg"
"""What pages and notebooks show, lit where a thread went."""

_HUMAN: Final = frozenset({"spec_review", "gate", "clarify", "consult", "pause", "hold"})
"""Nodes that may wait for a person."""


def machine_svg() -> str:
    """Return the machine; ``data-`` attributes name the nodes and edges that parts stand for."""
    style = "".join(SHIPPED.with_name(name).read_text() for name in ("colours.css", "machine.css"))
    opening = (
        '<svg class="daruma daruma-machine" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        'aria-label="The machine: its nodes and their outcomes">'
    )
    parts = [
        opening,
        f"<style>{' '.join(style.split())}</style>",
        _rect(BOXES[EITHER], "either", 12),
        *map(_edge, drawing().curves),
        *(_node(name, box) for name, box in BOXES.items() if name != EITHER),
        *(_label(curve.edge) for curve in drawing().curves if curve.edge in drawing().labels),
        *_foot(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rect(box: Box, kind: str, radius: float) -> str:
    x, y = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="{radius:g}"/>'
    )


def _named(kind: str, edge: Edge) -> str:
    ends = "" if edge.bug else ",".join(f"{source} {edge.target}" for source in edge.sources)
    return f'<g class="plain" data-{kind}="{ends}">'


def _edge(curve: Curve) -> str:
    edge = curve.edge
    kind = "bug" if edge.bug else "each" if edge.each else "step"
    title = escape(f"{edge.source} → {edge.target}: {edge.label or 'begins'}")
    return (
        f"{_named('edge', edge)}<title>{title}</title>"
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


def _label(edge: Edge) -> str:
    box, lines = drawing().labels[edge], label_lines(edge)
    top = box.y - (len(lines) - 1) * LINE / 2
    texts = (
        f'<text class="label" x="{box.x:.1f}" y="{top + number * LINE:.1f}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return f"{_named('label', edge)}{''.join(texts)}</g>"


def _node(name: str, box: Box) -> str:
    human = " human" if name in _HUMAN else ""
    radius = 13 if name in (BEGINNING, ENDING) else 7
    text = f'<text class="name" x="{box.x:g}" y="{box.y:g}">{escape(name)}</text>'
    return f'<g class="plain{human}" data-node="{name}">{_rect(box, "node", radius)}{text}</g>'


def _foot() -> Iterator[str]:
    lines = ["thick: once for each call or member", "dotted: a bug, by its handler"]
    for target in most_bugs_lead_to():
        names = [name for name, to in ON_BUG.items() if to == target]
        told = "in a phase" if "main" in names else "elsewhere"
        lines.append(f"a bug {told} leads to {target}")
    for number, line in enumerate(lines):
        y = HEIGHT - 60 + number * 15
        yield f'<text class="foot" x="650" y="{y}">{escape(line)}</text>'


if __name__ == "__main__":
    if "--choose" in sys.argv:
        choose()
    for place in (SHIPPED, Path(__file__).with_name("machine.svg")):
        place.write_text(machine_svg(), encoding="utf-8")
