"""``python -m tests.embedding [STREAMS] [ROUNDS]``: many streams, one reviewer, and ``kill -9``.

Prints one row of the published table for each round, on an embedded Postgres of its own. The tool
call at which the server is killed is drawn by chance.
"""

import asyncio
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from tests.embedding.killing import Came, come_of

from daruma.graph.storage._embedded import embedded_postgres

HEAD = """\
| streams | killed at tool call | completed | effects once | twice or lost | events | seconds |
|---|---|---|---|---|---|---|
"""


def row(streams: int, kill_at: int, came: Came) -> str:
    """Return a line of the table."""
    once = came.effects[1]
    heard = sum(came.events.values())
    cells = (
        streams,
        kill_at or "never",
        came.statuses["completed"],
        once,
        streams - once,
        f"{heard:,}",
        f"{came.seconds:.0f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main(streams: int, rounds: int) -> int:
    """Play the rounds; return 1 if anything was lost or came twice."""
    wrong = 0
    folder = Path(tempfile.mkdtemp(prefix="daruma-embedding-"))
    folder.chmod(0o755)  # as root, Postgres runs as an account that has to get in
    os.environ["DARUMA_DATA_DIR"] = str(folder / "data")
    sys.stdout.write(HEAD)
    with embedded_postgres(folder / "postgres") as url:
        for number in range(rounds):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE round_{number}")
            (at := folder / f"round-{number}").mkdir()
            kill_at = random.randint(streams // 4, 3 * streams // 4)  # noqa: S311
            database = make_conninfo(url, dbname=f"round_{number}")
            came = asyncio.run(come_of(at, database, streams, kill_at))
            wrong += came.statuses["completed"] != streams or came.effects[1] != streams
            sys.stdout.write(row(streams, kill_at, came))
            sys.stdout.flush()
    shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*[*given, *[50, 3][len(given) :]]))
