"""The drawing of the machine: routes and labels as they were chosen, kept beside this file.

``python -m daruma.graph.pictures.drawing`` chooses them anew, for a machine that has changed;
it takes a minute, and may be mended by hand: the tests say what must hold.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from daruma.graph.pictures.curves import Curve, chosen_curves, curve_of
from daruma.graph.pictures.edges import Edge, edges
from daruma.graph.pictures.labels import chosen_labels
from daruma.graph.pictures.layout import Box

KEPT: Final = Path(__file__).with_suffix(".json")


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


if __name__ == "__main__":
    choose()
