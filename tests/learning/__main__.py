"""Whether learning helps, and whether it does harm: ``python -m tests.learning [noise]``.

The tasks are carried out twice, on an embedded Postgres of its own: with learning on, with the
block of pitfalls cut out of each request, observing only, and switched off. With
``noise`` they are tasks that fail once of what teaches nothing, with learning on and off; and such
of which what they fell to has become wrong since: what learning costs then.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from langgraph.store.base import BaseStore
from tests.learning.arms import ARMS
from tests.learning.families import tasks
from tests.learning.misleading import misleading, stale
from tests.learning.noise import report
from tests.learning.passes import carried_out, learning_settings

from daruma.graph.storage import open_postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.tools.evolution import counterfactual_lessons


def main(args: Sequence[str]) -> None:
    """Print one table."""
    with _ground() as (store, folder):
        if args[:1] == ["noise"]:
            _noise(store, folder)
        else:
            _help(store, folder)


def _noise(store: BaseStore, folder: Path) -> None:
    print("| tasks | learning | number | failed | again | a third time | told | again |")  # noqa: T201
    print("|---|---|---|---|---|---|---|---|")  # noqa: T201
    report(list(misleading()), store, folder)
    report(list(stale()), store, folder, "stale")


def _help(store: BaseStore, folder: Path) -> None:
    print("| learning | failed first | failed again | repeated | requests |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    for arm in ARMS:
        found = carried_out(
            arm.model(script={}),
            tasks(),
            learning_settings(arm.name, **arm.evolution),
            store,
            folder / arm.name,
        )
        first, again = found.failures
        asked = " + ".join(map(str, found.requests))
        print(f"| {arm.name} | {first} | {again} | {found.repeated} | {asked} |")  # noqa: T201
    would = asyncio.run(counterfactual_lessons(store, "observing", 1000))
    print(f"observing: {len(would)} tasks would have been told of pitfalls")  # noqa: T201


@contextmanager
def _ground() -> Iterator[tuple[BaseStore, Path]]:
    with tempfile.TemporaryDirectory(prefix="daruma-learning-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with embedded_postgres(folder / "server") as url, open_postgres(url) as postgres:
            yield postgres.store, folder


if __name__ == "__main__":
    main(sys.argv[1:])
