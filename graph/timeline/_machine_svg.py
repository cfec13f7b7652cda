"""The picture of the machine, lit where a thread went.

``machine.svg`` lies beside this file, with a line for each of its parts; ``docs/draw_machine.py``
draws it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

_PART: Final = re.compile(r'<g class="plain( human)?" data-(node|edge|label)="([^"]*)">')
_NAME: Final = re.compile(r'(<text class="name" x="([\d.]+)" y=")([\d.]+)(">.*?</text>)')


@cache
def asset(name: str) -> str:
    """Return a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Picture:
    """The machine; nodes and edges with a count were walked, and are lit."""

    nodes: Mapping[str, int] = field(default_factory=dict)
    edges: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def svg(self) -> str:
        """The picture as SVG, with its own style in it."""
        drawn = asset("machine.svg")
        if not self.nodes:
            return drawn
        told = ", ".join(f"{name} {count} times" for name, count in self.nodes.items())
        drawn = re.sub('aria-label="[^"]*"', f'aria-label="The machine; walked: {told}"', drawn)
        parts = (self._lit(line) for line in drawn.splitlines())
        lines = list[str]()
        for _, own in groupby(parts, key=itemgetter(0)):
            lines += sorted(
                (line for _, line in own), key=lambda it: it.startswith('<g class="lit')
            )
        return "\n".join(lines) + "\n"

    def _lit(self, line: str) -> tuple[str, str]:
        """Return what kind of part a line is, and the line as it is where a thread went."""
        part = _PART.match(line)
        if part is None:
            return "", line
        human, kind, name = part.groups("")
        times = self.nodes.get(name, 0) if kind == "node" else self._taken(name)
        walked = times or name == "start" or (name == "end" and "finish" in self.nodes)
        rest = line[part.end() :]
        if times and kind == "node":
            found = _NAME.search(rest)
            if found:  # as in every node
                x, y = found[2], float(found[3])
                count = f'<text class="count" x="{x}" y="{y + 9:g}">×{times}</text>'
                rest = rest.replace(found[0], f"{found[1]}{y - 6:g}{found[4]}{count}")
        elif times:
            end = "</title>" if kind == "edge" else "</text></g>"
            count = f", {times} times" if kind == "edge" else f" ×{times}"
            rest = rest.replace(end, count + end)
        return kind, f'<g class="{"lit" if walked else "faded"}{human}">{rest}'

    def _taken(self, ends: str) -> int:
        """Return how often an edge was walked, from any of the nodes that it stands for."""
        edges = [tuple(each.split(" ")) for each in ends.split(",") if each]
        times = sum(self.edges.get((source, target), 0) for source, target in edges)
        return times or int(ends.startswith("start "))

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
