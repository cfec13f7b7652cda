"""The picture of the machine, as notebooks and files take it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daruma.graph.pictures.machine_svg import machine_svg


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
