"""How often the passage that answers a question is the first found, or among the first five."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from langgraph.store.base import PutOp

from daruma.graph.storage import PostgresStore
from daruma.tools.text import Way

HERE: Final = ("retrieval", "labelled")
WAYS: Final[tuple[Way, ...]] = ("words", "meaning", "both")


@dataclass(frozen=True)
class Labelled:
    """A passage, and the question that it answers."""

    kind: str
    text: str
    asks: str


@dataclass(frozen=True)
class Row:
    """The share of questions whose passage came first, and among the first five."""

    kind: str
    way: Way
    count: int
    first: float
    among_five: float


def labelled() -> list[Labelled]:
    """Return the sixty pairs."""
    text = (Path(__file__).parent / "labelled.yaml").read_text(encoding="utf-8")
    return [Labelled(**each) for each in yaml.safe_load(text)]


def filled(store: PostgresStore) -> None:
    """Put the passages."""
    store.batch([PutOp(HERE, f"{n:02}", {"text": each.text}) for n, each in enumerate(labelled())])


def quality(store: PostgresStore, ways: Sequence[Way] = WAYS) -> list[Row]:
    """Ask all questions in all ways; the last rows are of all kinds together."""
    rows: list[Row] = []
    for way in ways:
        places = asyncio.run(_places(store, way))
        kinds = sorted({kind for kind, _ in places})
        for kind in (*kinds, "all"):
            own = [place for each, place in places if kind in (each, "all")]
            first = sum(place == 0 for place in own) / len(own)
            rows.append(Row(kind, way, len(own), first, sum(p < 5 for p in own) / len(own)))
    return rows


async def _places(store: PostgresStore, way: Way) -> list[tuple[str, int]]:
    found = []
    for number, each in enumerate(labelled()):
        result = await store.afind(HERE, each.asks, way=way, limit=5)
        keys = [item.key for item in result.items]
        key = f"{number:02}"
        found.append((each.kind, keys.index(key) if key in keys else 99))
    return found
