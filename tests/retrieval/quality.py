"""How often the passage that answers a question is the first found, or among the first five."""

import ast
import asyncio
import sysconfig
from collections.abc import Iterator, Sequence
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


def filled(store: PostgresStore, pairs: Sequence[Labelled] | None = None) -> None:
    """Put the passages."""
    texts = [each.text for each in pairs or labelled()]
    store.batch([PutOp(HERE, f"{n:02}", {"text": text}) for n, text in enumerate(texts)])


def quality(
    store: PostgresStore, ways: Sequence[Way] = WAYS, pairs: Sequence[Labelled] | None = None
) -> list[Row]:
    """Ask all questions in all ways; the last rows are of all kinds together."""
    rows: list[Row] = []
    for way in ways:
        places = asyncio.run(_places(store, way, pairs or labelled()))
        kinds = sorted({kind for kind, _ in places})
        for kind in (*kinds, "all"):
            own = [place for each, place in places if kind in (each, "all")]
            first = sum(place == 0 for place in own) / len(own)
            rows.append(Row(kind, way, len(own), first, sum(p < 5 for p in own) / len(own)))
    return rows


async def _places(
    store: PostgresStore, way: Way, pairs: Sequence[Labelled]
) -> list[tuple[str, int]]:
    found = []
    for number, each in enumerate(pairs):
        result = await store.afind(HERE, each.asks, way=way, limit=5)
        keys = [item.key for item in result.items]
        key = f"{number:02}"
        found.append((each.kind, keys.index(key) if key in keys else 99))
    return found


def standard_library() -> Iterator[Labelled]:
    """Yield questions in plain English: the docstrings of Python's own modules.

    The first paragraph of each asks for the rest of it, among some thousand others.
    """
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                asks, _, text = (ast.get_docstring(node) or "").partition("\n\n")
                if len(asks.split()) >= 5 and len(text.split()) >= 20:
                    yield Labelled("docstrings", text, " ".join(asks.split()))
