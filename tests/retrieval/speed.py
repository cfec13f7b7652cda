"""How long a query takes, and how large the store is, with many passages beside few."""

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

from daruma.graph.storage import PostgresStore
from daruma.tools.text import Way

SIZE: Final = 384
_VOCABULARY: Final = 20_000
_WORDS: Final = 120
_AT_ONCE: Final = 500
_TABLES: Final = ("daruma_items", "daruma_item_vectors")


def _drawing(seed: object) -> random.Random:
    """Return what draws the same each time."""
    return random.Random(str(seed))  # noqa: S311 - no secret


class Drawn(Embeddings):
    """Vectors around one of a thousand centres, as texts have their subjects; by the first word."""

    def __init__(self) -> None:
        draw = _drawing(7)
        self.centres = [[draw.gauss(0, 1) for _ in range(SIZE)] for _ in range(1000)]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        draw = _drawing(text)
        centre = self.centres[draw.randrange(1000)]
        return [number + 0.5 * draw.uniform(-1, 1) for number in centre]


@dataclass(frozen=True)
class Speed:
    """Milliseconds a query, by the way it is searched."""

    way: Way
    median: float
    p95: float


def texts(seed: int) -> Iterator[str]:
    """Yield texts without an end; words are as common as in a language (Zipf)."""
    draw = _drawing(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = _drawing(1)
    vocabulary = [
        "".join(known.choices(letters, k=known.randint(4, 9))) for _ in range(_VOCABULARY)
    ]
    weights = list(itertools.accumulate(1 / (n + 1) for n in range(_VOCABULARY)))
    while True:
        yield " ".join(draw.choices(vocabulary, cum_weights=weights, k=_WORDS))


def filled(store: PostgresStore, namespace: tuple[str, ...], count: int) -> float:
    """Put so many passages; return the seconds that it took."""
    begun, source = time.perf_counter(), texts(count)
    for start in range(0, count, _AT_ONCE):
        numbers = range(start, min(count, start + _AT_ONCE))
        puts = [
            PutOp(namespace, f"{n}", {"text": text})
            for n, text in zip(numbers, source, strict=False)
        ]
        store.batch(puts)
    return time.perf_counter() - begun


def speeds(
    store: PostgresStore, namespace: tuple[str, ...], ways: Sequence[Way], rounds: int
) -> list[Speed]:
    """Ask for six words of a text's, again and again, the ways in turns."""
    taken: dict[Way, list[float]] = {way: [] for way in ways}
    source, draw = texts(99), _drawing(5)
    for _ in range(rounds):
        query = " ".join(draw.sample(next(source).split(), 6))
        for way in ways:
            begun = time.perf_counter()
            asyncio.run(store.afind(namespace, query, way=way))
            taken[way].append(1000 * (time.perf_counter() - begun))
    return [
        Speed(way, statistics.median(times), sorted(times)[int(0.95 * len(times))])
        for way, times in taken.items()
    ]


def megabytes(url: str) -> dict[str, float]:
    """Return what the tables take on disk, with their indexes."""
    with psycopg.connect(url) as connection:
        sizes = "SELECT coalesce(pg_total_relation_size(to_regclass(%s)), 0)"
        found = {name: connection.execute(sizes, [name]).fetchone() for name in _TABLES}
    return {name: row[0] / 1e6 if row else 0.0 for name, row in found.items()}


def analyzed(url: str) -> None:
    """Let Postgres know what there is, as it does by itself after a minute."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE daruma_items")
