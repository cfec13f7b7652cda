"""``python -m tests.hostile`` runs Daruma in every hostile workspace, and says what got out.

Words choose among the traps; ``--level landlock`` asks for another sandbox than the best there is.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from tests.hostile.sweep import CASES, Place, carry_out

from daruma.graph.storage._embedded import embedded_postgres


def main() -> int:
    """Carry out all cases, two at a time; return how many are not safe, one at the most."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("words", nargs="*")
    given.add_argument("--level", default="")
    args = given.parse_args()
    cases = [(t, w) for t, w in CASES if not args.words or any(x in f"{t} {w}" for x in args.words)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        top = Path(name)
        top.chmod(0o755)
        with embedded_postgres(top / "pg") as server, ThreadPoolExecutor(2) as pool:

            def one(number: int) -> tuple[list[str], float]:
                start = time.monotonic()
                database = f"hostile_{number}"
                with psycopg.connect(server, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {database}".encode())
                url = make_conninfo(server, dbname=database)
                found = carry_out(*cases[number], Place(top / str(number), url, args.level))
                return found, time.monotonic() - start

            told = 0
            for case, (found, seconds) in zip(cases, pool.map(one, range(len(cases))), strict=True):
                told += bool(found)
                sys.stdout.write(
                    f"{' '.join(case)}: {'; '.join(found) or 'safe'} ({seconds:.0f} s)\n"
                )
                sys.stdout.flush()
    sys.stdout.write(f"{len(cases)} hostile workspaces, {told} not safe\n")
    return min(told, 1)


if __name__ == "__main__":
    sys.exit(main())
