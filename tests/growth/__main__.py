"""What a long thread costs: ``python -m tests.growth [--budget TOKENS] [STEPS [CHARACTERS ...]]``.

A thread of 1,000 steps with outputs of 1 KB, and one with 20 KB, on an embedded Postgres of their
own: milliseconds and bytes of the first, a middle and the last hundred steps, and the ratio. With a
budget no request has more tokens than that, however long the thread is.
"""

import sys
import tempfile
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from tests.growth.long_thread import Mark, between, long_thread

from daruma.graph.storage.embedded import embedded_postgres
from daruma.graph.storage.postgres import open_postgres


def main(args: list[str]) -> None:
    """Print one table for each size of output."""
    budget = int(args[1]) if args[:1] == ["--budget"] else None
    numbers = args[2:] if budget else args
    steps, *sizes = map(int, numbers) if numbers else (1000, 1000, 20_000)
    with tempfile.TemporaryDirectory(prefix="daruma-growth-") as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with embedded_postgres(Path(folder) / "server") as server:
            for size in sizes:
                _measure(server, steps, size, budget)


def _measure(server: str, steps: int, size: int, budget: int | None) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE growth_{size}")
    url = make_conninfo(server, dbname=f"growth_{size}")
    with open_postgres(url) as postgres:
        marks = long_thread(postgres, url, steps=steps, size=size, budget=budget)
    parts = between(marks)
    within = f", requests of at most {budget} tokens" if budget else ""
    say(f"{steps} steps with outputs of {size} characters{within}")
    say("     steps   ms/step   of it asking the model   of a processor   bytes/step   so far")
    for part, mark in zip(parts, marks[1:], strict=True):
        _line(part, mark, every=steps // len(parts))
    first, last = parts[0], parts[-1]
    own = (last.seconds - last.asking) / (first.seconds - first.asking)
    far = (marks[-1].kept / marks[-1].steps) / (marks[1].kept / marks[1].steps)
    say(
        f"last/first: {last.seconds / first.seconds:.2f} in time, {own:.2f} without the model call,"
        f" {last.working / first.working:.2f} of a processor, {far:.2f} in bytes so far"
    )


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _line(part: Mark, mark: Mark, *, every: int) -> None:
    spent, asking, working = (
        1000 * each / every for each in (part.seconds, part.asking, part.working)
    )
    say(
        f"{part.steps - every:5}-{part.steps:<5}{spent:8.1f}{asking:25.1f}{working:17.1f}"
        f"{part.kept / every:13,.0f}{mark.kept / mark.steps:9,.0f}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
