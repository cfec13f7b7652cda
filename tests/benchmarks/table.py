"""A table as docs/measured.md shows it, and as a program reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Options:
    """How much is measured. ``steps`` None leaves their number to each table."""

    pairs: int = 5
    steps: int | None = None
    seed: int = 7
    budget: int | None = None
    """Most tokens of a request, for the table that looks at long threads."""
    crowds: tuple[int, ...] = (1, 10, 50, 200)
    """How many threads run at once, for the table that looks at these."""
    warm: bool = True
    """Whether a first round is left out."""


@dataclass(frozen=True)
class Table:
    """Rows under a head; ``told`` says what was run; ``samples`` is all that was measured."""

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    told: str
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def markdown(self, machine: str) -> str:
        """Return it ready to be pasted, with how it is made again."""
        rule = ["---"] * len(self.head)
        lines = ["| " + " | ".join(row) + " |" for row in (self.head, rule, *self.rows)]
        again = f"Made again by `python -m tests.benchmarks {self.name}`: {machine}."
        return "\n".join([f"**{self.title}**", "", *lines, "", f"{self.told} {again}", ""])

    def data(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return asdict(self)
