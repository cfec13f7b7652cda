"""Places for the outcomes on their edges: none over a node, none over another."""

from collections.abc import Sequence
from typing import Final

from daruma.graph.pictures.curves import Curve
from daruma.graph.pictures.edges import EITHER, Edge
from daruma.graph.pictures.layout import BOXES, HEIGHT, WIDTH, Box

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
            found.append((_cost(box, taken, aside) + _crossed(box, curve, curves), box))
            if found[-1][0] == 0:
                return box
    return min(found)[1]


def _cost(box: Box, taken: Sequence[Box], aside: tuple[int, int]) -> float:
    outside = abs(box.x - WIDTH / 2) * 2 > WIDTH - box.width or not 8 < box.y < HEIGHT - 8
    over = sum(box.grown(1.5).meets(other) for other in taken)
    return 1000 * (over + outside) + (abs(aside[0]) + abs(aside[1])) / 10


def _crossed(box: Box, own: Curve, curves: Sequence[Curve]) -> float:
    crossed = (any(box.holds(x, y) for x, y in each.samples) for each in curves if each != own)
    return 10.0 * sum(crossed)
