"""Choosing routes for edges: of many curves, the one that runs through no node and crosses least.

It takes seconds, so what was chosen is kept: see ``drawing.py``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Final, NamedTuple

from daruma.graph.pictures.edges import EITHER, Edge, edges
from daruma.graph.pictures.layout import BOXES, HEIGHT, WIDTH, Box

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
