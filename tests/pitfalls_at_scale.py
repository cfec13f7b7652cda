"""How long it takes to look pitfalls up: ``python -m tests.pitfalls_at_scale [N]``.

N pitfalls (100,000) beside 1,000, each in a database of its own on one server, asked in turns.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from langgraph.store.base import Op, Result
from psycopg.conninfo import make_conninfo
from tests.tools.evolution.ended_tasks import similar
from typing_extensions import override

from daruma.graph.storage import PostgresStore, open_postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.graph.storage._sealing import Checked
from daruma.graph.storage._store import Search
from daruma.graph.storage.items._rows import IndexWords
from daruma.graph.sync import run
from daruma.state.lessons import Experience, Setback
from daruma.tools.evolution import Pitfalls
from daruma.tools.evolution._pitfalls import evidence_of_setback, stored_pitfall, summarise

OWNER: Final = "/srv/billing"
NOW: Final = 1_000_000.0
LEAST: Final = 0.5
QUERIES: Final = 30
_AT_ONCE: Final = 1000

_VERBS = "Fix Repair Add Change Rename Remove Test Document Accelerate Check Move Split"
_PARTS = (
    "rounding parser export login cache retry report invoice split median search index upload "
    "queue worker schema migration template filter sorting date currency session token"
)
_AIMS = (
    "so that all tests pass",
    "for empty input",
    "without changing the interface",
    "for large files",
    "as the ticket says",
    "in the nightly job",
    "before the release",
)
_TEXTS = ("assert # == #", "KeyError: 'id'", "ImportError: no module", "TypeError", "timed out")


class Counted(PostgresStore):
    """A store that counts its calls: each way of asking goes through one of these two."""

    calls = 0

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        self.calls += 1
        return await super().abatch(ops)

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self.calls += 1
        return super().batch(ops)


@dataclass
class Executed:
    """A connection that counts the statements it is given."""

    connection: Any
    count: int = 0

    async def execute(self, *args: Any) -> Any:
        self.count += 1
        return await self.connection.execute(*args)


def goal(number: int) -> str:
    """Return a goal; words are as common as in a language, and a third of them name a file."""
    draw = random.Random(number)  # noqa: S311 - no secret
    parts = _two_of(_PARTS.split(), draw)
    where = f" in {parts[1]}/m{draw.randrange(5000)}.py" if number % 3 == 0 else ""
    verb, aim, customer = draw.choice(_VERBS.split()), draw.choice(_AIMS), draw.randrange(20_000)
    return f"{verb} the {parts[0]} of the {parts[1]}{where} {aim} (customer {customer})"


def _two_of(parts: Sequence[str], draw: random.Random) -> list[str]:
    return draw.choices(parts, [1 / (n + 1) for n in range(len(parts))], k=2)


def experience(number: int) -> Experience:
    """Return a task that fell to something; every fifth was overcome."""
    text = f"pytest failed: test_{number % 997}: {_TEXTS[number % len(_TEXTS)]}"
    setback = Setback(
        kind="check",
        actor="main",
        signature=f"check:{number % 997}:{number}",
        text=text,
        ended=number % 5 > 0,
    )
    return Experience(
        task_id=f"t{number}/1",
        owner=OWNER,
        mode="plan_exec",
        status="failed",
        goal=goal(number),
        at=NOW - number % 86_400,
        setbacks=(setback,),
    )


def fill(store: PostgresStore, count: int) -> float:
    """Put so many pitfalls, each as one task makes it; return the seconds that it took."""
    begun = time.perf_counter()
    for start in range(0, count, _AT_ONCE):
        told = map(experience, range(start, min(count, start + _AT_ONCE)))
        facts = [evidence_of_setback(each.setbacks[0], each) for each in told]
        made = [stored_pitfall(summarise([fact], LEAST)[0], shared=False) for fact in facts]
        own = Pitfalls(store, OWNER).kept
        store.batch([own.to_put(each.id, each) for each in made])
    return time.perf_counter() - begun


def asked(store: Counted, number: int) -> tuple[float, int, list[str]]:
    """Look up what fits a goal; return milliseconds, calls of the store, and the ids found."""
    store.calls, pitfalls = 0, Pitfalls(store, OWNER)
    begun = time.perf_counter()
    found = asyncio.run(similar(pitfalls, goal(number), NOW, LEAST))
    taken = 1000 * (time.perf_counter() - begun)
    return taken, store.calls, [each.id for each in found]


def statements(store: PostgresStore, number: int) -> int:
    """Return how many statements of SQL one lookup makes, within its one transaction."""
    (op,) = Pitfalls(store, OWNER).similar_ops(goal(number))

    async def count(connection: Any) -> int:
        executed: Any = Executed(connection)
        await Search(IndexWords(Checked()), store.meanings, {}).of(executed, op)
        return int(executed.count)

    return run(store.database.transact(count), loop=store.database.loop)


def scans(url: str) -> tuple[int, int]:
    """Return how often the items' table was read whole, and by an index."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'daruma_items'"
        ).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def measure(urls: Sequence[str], counts: Sequence[int]) -> None:
    """Fill, and ask all in turns; say what it took."""
    for url, count in zip(urls, counts, strict=True):
        with open_postgres(url) as pg:
            _say(f"{count} pitfalls put within {fill(pg.store, count):.0f} s")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE daruma_items")
    before = [scans(url) for url in urls]
    with open_postgres(urls[0]) as one, open_postgres(urls[1]) as other:
        stores = [Counted(each.store.database) for each in (one, other)]
        taken = _in_turns(stores, counts)
        made = [statements(store, 1) for store in stores]
    medians = [statistics.median(ms for ms, _, _ in each) for each in taken]
    for n, count in enumerate(counts):
        calls = {number for _, number, _ in taken[n]}
        right = sum(bool(found) for _, _, found in taken[n])
        whole, by_index = (b - a for a, b in zip(before[n], scans(urls[n]), strict=True))
        _say(
            f"{count}: median {medians[n]:.1f} ms, slowest {max(taken[n])[0]:.1f} ms; "
            f"store calls per lookup {calls}, statements {made[n]}; found for {right} of {QUERIES};"
            f" the table read whole {whole} times, by an index {by_index} times"
        )
    _say(f"ratio of the medians: x{medians[1] / medians[0]:.2f}")


def _in_turns(
    stores: Sequence[Counted], counts: Sequence[int]
) -> list[list[tuple[float, int, list[str]]]]:
    taken: list[list[tuple[float, int, list[str]]]] = [[] for _ in stores]
    for turn in range(-3, QUERIES):  # the first three warm up
        for n, (store, count) in enumerate(zip(stores, counts, strict=True)):
            found = asked(store, (turn + 3) * 31 % count)
            taken[n] += [found] if turn >= 0 else []
    return taken


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with embedded_postgres(Path(folder)) as server:
            with psycopg.connect(server, autocommit=True) as administrator:
                for name in ("few", "many"):
                    administrator.execute(f"CREATE DATABASE {name}".encode())
            urls = [make_conninfo(server, dbname=name) for name in ("few", "many")]
            measure(urls, [min(1000, count), count])


if __name__ == "__main__":
    main()
