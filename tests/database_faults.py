"""The long form of test_database_faults.py: what was tried, and how often it made a difference.

Usage: ``python -m tests.database_faults``; it takes some ten minutes. A share of it, such as
``0.1``, can be given.
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

from tests.fault_proxy import Fate, FaultProxy, fault_proxy, once, passing
from tests.faulty_runs import (
    Outages,
    at_random,
    config_of,
    graph_of,
    own_server,
    run_to_the_end,
    seen,
    swept,
    terminate_others,
    under,
    untouched,
    when,
)

from daruma.graph.storage import Postgres, open_postgres
from daruma.state.errors import StorageUnavailable

Row = tuple[str, int, int, str]
"""What was done, in how many runs, how many of them differed, and what else was seen."""


def every_message(proxy: FaultProxy, home: Path, share: float) -> Iterator[Row]:
    under(proxy, home / "counted", passing)
    points = range(0, proxy.messages + 20, round(1 / share))
    kinds: tuple[Fate, Fate] = ("cut before", "cut after")
    for kind in kinds:
        inner = home / kind.replace(" ", "-")
        inner.mkdir()
        wrong = swept(proxy, inner, points, kind)
        yield f"{kind} each client message", len(points), len(wrong), f"{wrong or ''}"


def random_cuts(proxy: FaultProxy, home: Path, share: float) -> Iterator[Row]:
    meant, seeds = untouched(proxy.server, home / "meant"), range(max(2, round(20 * share)))
    cuts, wrong, took = 0, 0, [0.0]
    for seed in seeds:
        began = monotonic()
        wrong += under(proxy, home / f"seed-{seed:02}", at_random(seed, 0.05)) != meant
        cuts, took = cuts + proxy.faults, [*took, monotonic() - began]
    yield "5 % of messages cut", len(seeds), wrong, f"{cuts} cuts, at most {max(took):.1f} s"


def silence(proxy: FaultProxy, home: Path, share: float) -> Iterator[Row]:
    meant, wrong, took = untouched(proxy.server, home / "well"), 0, [0.0]
    points = range(0, 200, 20 if share == 1 else 80)
    for point in points:
        began = monotonic()
        wrong += under(proxy, home / f"silent-{point}", once(point, "swallow")) != meant
        took.append(monotonic() - began)
    yield "a connection falls silent", len(points), wrong, f"at most {max(took):.1f} s"


def slowness(proxy: FaultProxy, home: Path, _: float) -> Iterator[Row]:
    meant, began = untouched(proxy.server, home / "quick"), monotonic()
    proxy.delay = 0.05
    wrong = int(under(proxy, home / "slow", passing) != meant)
    yield "+50 ms for each piece sent", 1, wrong, f"{monotonic() - began:.1f} s"


def terminations(server: str, home: Path) -> Iterator[Row]:
    meant, ended = untouched(server, home / "alone"), list[int]()

    def one(pg: Postgres, folder: Path) -> bool:
        folder.mkdir()
        graph = graph_of(pg, folder, lambda _: ended.append(terminate_others(server)))
        return seen(run_to_the_end(graph, folder), folder) != meant

    with open_postgres(server) as pg, ThreadPoolExecutor(10) as pool:
        wrong = sum(pool.map(lambda n: one(pg, home / f"at-once-{n}"), range(10)))
    yield "all backends terminated, 10 threads at once", 10, wrong, f"{sum(ended)} ended"


def restarts(home: Path) -> Iterator[Row]:
    with own_server(home / "own") as (server, outages):
        meant, wrong, took = untouched(server, home / "before"), 0, [0.0]
        for number, at in enumerate(("model 1", "one", "model 2", "five", "three", "model 4")):
            folder, began = home / f"restart-{number}", monotonic()
            folder.mkdir()
            during = when(at, lambda: outages.stop_for(1.0))
            with open_postgres(server) as pg:
                graph = graph_of(pg, folder, during)
                wrong += seen(run_to_the_end(graph, folder), folder) != meant
            outages.over()
            took.append(monotonic() - began)
        yield "stopped -m immediate, started 1 s later", 6, wrong, f"at most {max(took):.1f} s"
        yield from _too_long(home, server, outages)


def _too_long(home: Path, server: str, outages: Outages) -> Iterator[Row]:
    meant, wrong, took = untouched(server, home / "again"), 0, [0.0]
    for number in range(1, 5):
        folder = home / f"too-long-{number}"
        folder.mkdir()
        with open_postgres(server, outage_seconds=1) as pg:
            during = when(f"model {number}", outages.stop)
            graph, began = graph_of(pg, folder, during), monotonic()
            try:
                run_to_the_end(graph, folder)
                wrong += 1
            except StorageUnavailable:
                took.append(monotonic() - began)
            outages.start()
            graph.invoke(None, config_of(folder))
            wrong += seen(run_to_the_end(graph, folder), folder) != meant
    said = f"storage_unavailable after at most {max(took):.1f} s, resumed"
    yield "stopped for longer than outage_seconds=1", 4, wrong, said


def main(share: float) -> None:
    """Print the table, row by row."""
    home = Path(tempfile.mkdtemp(prefix="daruma-faults-"))
    home.chmod(0o755)
    logging.basicConfig(handlers=[logging.NullHandler()])  # psycopg tells of each fault
    os.environ["DARUMA_DATA_DIR"] = str(home / "data")
    sys.stdout.write("| what happens | runs | different | |\n|---|---|---|---|\n")
    try:
        with own_server(home / "server") as (server, _), fault_proxy(server) as proxy:
            for tried in (slowness, silence, random_cuts, every_message):
                inner = home / tried.__name__
                inner.mkdir()
                _show(tried(proxy, inner, share))
            _show(terminations(server, home))
        _show(restarts(home))
    finally:
        shutil.rmtree(home)


def _show(rows: Iterator[Row]) -> None:
    for what, runs, different, told in rows:
        sys.stdout.write(f"| {what} | {runs} | {different} | {told} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 1.0)
