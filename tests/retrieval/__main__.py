"""Measures finding: ``python -m tests.retrieval [N]``, N passages (100,000) beside 1,000.

First how often the passage that answers is found, by words, by the meaning that a real small model
sees, and by both; then the time of a query, of taking in, and the size, with vectors that are drawn
(the time to embed is the model's, and not counted). With N 0 the first alone.
"""

import sys
import tempfile
from pathlib import Path
from subprocess import CalledProcessError

import psycopg
from psycopg.conninfo import make_conninfo
from tests.retrieval import quality, speed
from tests.retrieval.real_model import real_model

from daruma.graph.storage import open_postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.tools.text import Way

SMALL = ("retrieval", "small")
LARGE = ("retrieval", "large")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def told_quality(url: str, plain: str) -> None:
    """Say how often the right passage is found."""
    try:
        with real_model() as model, open_postgres(url, embeddings=model) as pg:
            quality.filled(pg.store)
            rows = quality.quality(pg.store)
    except CalledProcessError:
        say("the real model can not be fetched here: by words alone")
        with open_postgres(url) as pg:
            quality.filled(pg.store)
            rows = quality.quality(pg.store, ["words"])
    say(f"{'questions':10}{'':5}{'by':>10}{'first':>8}{'of five':>9}")
    pairs = list(dict.fromkeys(quality.standard_library()))
    with open_postgres(plain) as pg:
        quality.filled(pg.store, pairs)
        rows += quality.quality(pg.store, ["words"], pairs)[:1]
    for row in rows:
        say(f"{row.kind:10}{row.count:5}{row.way:>10}{row.first:8.0%}{row.among_five:9.0%}")


def told_speed(url: str, count: int, rounds: int = 100) -> None:
    """Say how long queries take, with few passages and with many."""
    ways: tuple[Way, ...] = ("words", "meaning", "both")
    medians: dict[tuple[str, Way], float] = {}
    with open_postgres(url, embeddings=speed.Drawn()) as pg:
        for namespace, number in ((SMALL, min(1000, count)), (LARGE, count)):
            took = speed.filled(pg.store, namespace, number)
            speed.analyzed(url)
            sizes = ", ".join(f"{n} {mb:.0f} MB" for n, mb in speed.megabytes(url).items())
            say(f"{number} passages taken in within {took:.1f} s; {sizes}; {pg.store.note}")
        for namespace in (SMALL, LARGE):
            speed.speeds(pg.store, namespace, ways, rounds // 5 + 1)
            for each in speed.speeds(pg.store, namespace, ways, rounds):
                medians[namespace[1], each.way] = each.median
                say(f"{namespace[1]:6}{each.way:>9}{each.median:8.1f} ms, p95 {each.p95:.1f}")
    for way in ways:
        say(f"{way}: x{medians['large', way] / medians['small', way]:.1f}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with embedded_postgres(Path(folder)) as server:
            with psycopg.connect(server, autocommit=True) as administrator:
                for name in ("quality", "plain", "speed"):
                    administrator.execute(f"CREATE DATABASE {name}".encode())
            told_quality(*(make_conninfo(server, dbname=name) for name in ("quality", "plain")))
            if count:
                told_speed(make_conninfo(server, dbname="speed"), count)


if __name__ == "__main__":
    main()
