"""Where experience is kept: in namespaces of its owner's, apart from everybody else's (EV-04)."""

from typing import Final, Literal

from daruma.tools.memory.namespaces import label

ROOT: Final = ("daruma", "evolution")

Shelf = Literal[
    "experiences", "pitfalls", "evidence", "recoveries", "variants", "outcomes", "upkeep"
]
"""What an owner has: one namespace of each kind, or one beneath it for each thing of that kind."""


def shelf(owner: str, kind: Shelf, *of: str) -> tuple[str, ...]:
    """Return the namespace of an owner's things of a kind; of one thing, named by ``of``."""
    return (*ROOT, label(owner), kind, *map(label, of))
