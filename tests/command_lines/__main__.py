"""``python -m tests.command_lines`` types every kind of line in every place, in real processes.

Words choose among the places. ``--lines`` is how many lines are drawn for each, beside every
command alone and under Tab; 0 takes all that there are.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from tests.command_lines.lines import SHELLS, Words, commands, lines, presses
from tests.command_lines.worlds import World, environment, fault_of, lay_out, press, worlds

from daruma.graph.storage import open_postgres
from daruma.graph.storage._embedded import embedded_postgres

SECONDS = 120
CLOSED_PIPE = 141


def type_line(
    line: Words, variables: Mapping[str, str], folder: Path, *, closed: bool
) -> str | None:
    """Type a line, with its output closed at once if it is to be; say what is wrong with it."""
    argv = [sys.executable, "-m", "daruma", *line]
    if closed:
        argv = ["bash", "-c", 'set -o pipefail; "$@" | true', "bash", *argv]
    try:
        done = subprocess.run(
            argv,
            check=False,
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    out, err = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
    if closed and done.returncode == CLOSED_PIPE:
        return None if len(err.splitlines()) <= 1 and "bug" not in err else "more lines"
    if "_DARUMA_COMPLETE" in variables:
        return None if err == "" and done.returncode in (0, 1) else f"Tab: {err[:200]}"
    return fault_of(line, done.returncode, out, err)


def sweep(name: str, world: World, top: Path, drawn: list[Words], pool: ThreadPoolExecutor) -> int:
    """Type the lines in one world; return how many were answered wrongly."""
    folder, variables = lay_out(world, top), environment(world, top)
    if world.gone:  # a process can only start where there is something
        return 0
    tabs = [({**variables, **press(shell, words)}, ()) for shell in SHELLS for words in presses()]
    chance = random.Random(name)  # noqa: S311 - which lines are typed
    typed = [(variables, line) for line in drawn] + chance.sample(tabs, 30)
    told = pool.map(lambda each: type_line(each[1], each[0], folder, closed=False), typed)
    shut = pool.map(lambda line: type_line(line, variables, folder, closed=True), drawn[:40])
    faults = [(each[1], fault) for each, fault in zip(typed, told, strict=True) if fault]
    faults += [
        (line, f"closed: {fault}") for line, fault in zip(drawn, shut, strict=False) if fault
    ]
    for line, fault in faults:
        sys.stdout.write(f"  {[each[:60] for each in line]}: {fault}\n")
    sys.stdout.write(f"{name}: {len(typed) + len(drawn[:40])} lines, {len(faults)} wrong\n")
    sys.stdout.flush()
    return len(faults)


def main() -> int:
    """Type the lines, two at a time; return 1 if one was answered wrongly."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("words", nargs="*")
    given.add_argument("--lines", type=int, default=150)
    args = given.parse_args()
    every = lines()
    bare = [path for path, _ in commands() if path in every]  # a worker alone would wait
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        top = Path(name)
        top.chmod(0o755)
        with embedded_postgres(top / "pg") as server, ThreadPoolExecutor(2) as pool:
            urls = [make_conninfo(server, dbname=each) for each in ("live", "other")]
            with psycopg.connect(server, autocommit=True) as owner:
                owner.execute("CREATE DATABASE live")
                owner.execute("CREATE DATABASE other")
            with open_postgres(urls[1]), psycopg.connect(urls[1]) as owner:
                owner.execute("UPDATE daruma_version SET v = v + 1")
            found = worlds(urls[0], urls[1], top / "w")
            for place, world in found.items():
                if args.words and not any(word in place for word in args.words):
                    continue
                (top / "w").mkdir(exist_ok=True)
                chance = random.Random(place)  # noqa: S311 - which lines are typed
                drawn = chance.sample(every, args.lines) if args.lines else every
                wrong += sweep(place, world, top / "w", [*bare, *drawn], pool)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
