"""Daruma beside its peers: ``python -m tests.benchmarks [TABLE ...]``, all of them if not said.

``--pairs N`` rounds (5), ``--steps N`` of a run, ``--json FILE`` for all that was measured,
``--budget TOKENS`` for the requests of long threads. On an embedded Postgres of its own.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from tests.benchmarks.ground import Ground, ground_on
from tests.benchmarks.machine_line import machine_line
from tests.benchmarks.table import Options, Table

from daruma.graph.storage._embedded import embedded_postgres
from daruma.state.errors import DarumaError

TABLES: Final = ("steps", "growth", "threads", "floor", "tools", "start", "tasks")


def measured(name: str, ground: Ground, options: Options) -> list[Table]:
    """Measure one table, with what belongs to it."""
    measure: Callable[[Ground, Options], list[Table]] = import_module(
        f"tests.benchmarks.{name}"
    ).measure
    return measure(ground, options)


def main(args: Sequence[str]) -> None:
    """Print the tables that were asked for, each as soon as it is there."""
    asked = _asked(args)
    logging.getLogger("daruma.evolution").setLevel(logging.CRITICAL)  # crowds are not learned from
    options = Options(asked.pairs, asked.steps, asked.seed, asked.budget)
    tables: list[Table] = []
    for name in asked.tables or TABLES:
        import_module(f"tests.benchmarks.{name}")  # what a peer lacks is said before anything runs
    with tempfile.TemporaryDirectory(prefix="daruma-benchmarks-") as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        os.environ["DARUMA_DATA_DIR"] = str(Path(folder, "data"))
        with embedded_postgres(Path(folder, "server")) as server:
            for name in asked.tables or TABLES:
                with ground_on(server) as ground:
                    found = measured(name, ground, options)
                tables += found
                say("\n".join(table.markdown(machine_line()) for table in found))
    if asked.json:
        seen = {"machine": machine_line(), "tables": [table.data() for table in tables]}
        asked.json.write_text(json.dumps(seen, indent=1), encoding="utf-8")


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _asked(args: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    for name in ("pairs", "steps", "budget"):
        parser.add_argument(f"--{name}", type=_number, default=getattr(Options(), name))
    parser.add_argument("--seed", type=int, default=Options().seed)
    parser.add_argument("--json", metavar="FILE", type=_new_file)
    asked = parser.parse_args(args)
    if unknown := set(asked.tables) - set(TABLES):
        parser.error(f"no table {', '.join(sorted(unknown))}: there are {', '.join(TABLES)}")
    return asked


def _number(said: str) -> int:
    if not said.isdecimal() or not int(said):
        raise argparse.ArgumentTypeError(f"{said!r} is no number of 1 or more")
    return int(said)


def _new_file(said: str) -> Path:
    """Return a file that can be written, before all is measured for it."""
    try:
        with Path(said).open("a"):
            pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{said}: {error.strerror}") from None
    return Path(said)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("stopped: the tables above are whole")
    except ModuleNotFoundError as error:
        sys.exit(f"the peers need {error.name}: pip install -e '.[dev]'")
    except DarumaError as error:
        sys.exit(str(error))
