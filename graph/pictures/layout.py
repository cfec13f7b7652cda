"""Where each node stands in the picture: chosen by eye, so that related ones stand together."""

from typing import Final, NamedTuple

from daruma.graph.pictures.edges import BEGINNING, EITHER, ENDING

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
    "reflect": (450, 430),
    "verify": (450, 530),
    "settle": (268, 545),
    "recovery": (640, 560),
    "consult": (790, 560),
    "rollback": (115, 600),
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
