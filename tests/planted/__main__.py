"""``python -m tests.planted [WORDS]`` plants mistakes in private copies, and says which are caught.

Words choose among the files, the tests, and what a mistake breaks; ``--sample 30`` takes that many
by lot. The tests that are known to catch a mistake are run on it, up to the first that fails. Ahead
of that, all of them are run without any mistake: one that fails then proves nothing.

``--anew FILE...`` looks for the tests that catch each chosen mistake, and writes them into the
data. The files are what ``coverage`` has stored with a context for each test (``pytest -n 2
--cov=graph --cov=nodes --cov=tools --cov=state --cov-context=test --cov-report=``).
"""

import argparse
import random
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.planted.checkout import Checkout
from tests.planted.mistakes import ROOT, Mistake, exists, read, write
from tests.planted.reach import Reach

AT_ONCE = 2
LIMIT = 300.0
"""Seconds for a mistake: one whose tests have not ended by then is caught, as it hangs."""
WHOLE_LIMIT = 3600.0
FEW, MANY, NAMED = 8, 60, 3
"""Tests that are tried first for a mistake, those that are tried at the most, and are named."""


class Trial:
    """Tries mistakes, a few at once, each thread in a copy of its own below ``top``."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._own = threading.local()

    def _checkout(self) -> Checkout:
        if not hasattr(self._own, "checkout"):
            folder = self._top / str(threading.get_ident())
            folder.mkdir(mode=0o755)
            self._own.checkout = Checkout(folder)
        checkout: Checkout = self._own.checkout
        return checkout

    def fail_anyway(self, tests: Sequence[str]) -> list[str]:
        """Return those of the tests that fail without any mistake."""
        return self._checkout().test(tests, limit=WHOLE_LIMIT) if tests else []

    def replay(self, mistake: Mistake, unsound: Collection[str]) -> str:
        """Say what becomes of a mistake whose tests are known; ``unsound`` ones do not count."""
        if mistake.planted((ROOT / mistake.file).read_text(encoding="utf-8")) is None:
            return "MISSED: its lines are no longer there"
        if not mistake.caught_by:
            return "missed, as is known"
        sound = [test for test in mistake.caught_by if test not in unsound]
        if not sound:
            return "MISSED: its tests are gone, or fail without it"
        failed = self._checkout().plant(mistake, sound, 1, LIMIT)
        return f"caught: {failed[0]}" if failed else "MISSED"

    def search(self, mistake: Mistake, reaching: Sequence[str]) -> Mistake:
        """Return a mistake with the tests that catch it, of those that reach its lines."""
        for some in filter(None, (reaching[:FEW], reaching[FEW:MANY])):
            failed = self._checkout().plant(mistake, some, NAMED, LIMIT)
            if found := tuple(test for test in failed if exists(test)):
                return replace(mistake, caught_by=found[:NAMED])
        return replace(mistake, caught_by=())


def chosen_of(mistakes: Sequence[Mistake], args: argparse.Namespace) -> Sequence[Mistake]:
    """Return the mistakes that are asked for."""
    named = [each for each in mistakes if each.matches(args.words)]
    by_lot = args.sample is not None and args.sample < len(named)
    return random.Random(args.seed).sample(named, args.sample) if by_lot else named  # noqa: S311


def replay(pool: ThreadPoolExecutor, trial: Trial, mistakes: Iterable[Mistake]) -> int:
    """Replay mistakes, and return how many are missed that were caught."""
    known = sorted({test for each in mistakes for test in each.caught_by})
    there = [test for test in known if exists(test)]
    failing = pool.map(trial.fail_anyway, [there[n::AT_ONCE] for n in range(AT_ONCE)])
    unsound = {*known} - {*there} | {test for some in failing for test in some}
    for test in sorted(unsound):
        sys.stdout.write(f"does not count, as it is gone or fails without a mistake: {test}\n")
    missed = 0
    for each, said in zip(
        mistakes, pool.map(lambda each: trial.replay(each, unsound), mistakes), strict=True
    ):
        missed += said.startswith("MISSED")
        sys.stdout.write(f"{each}: {said}\n")
        sys.stdout.flush()
    return missed


def main() -> int:
    """Replay, or search anew; return 1 if a mistake is missed that was caught."""
    given = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    given.add_argument("words", nargs="*")
    given.add_argument("--sample", type=int)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--anew", nargs="+", type=Path, metavar="FILE", default=[])
    args = given.parse_args()
    mistakes = read()
    chosen = chosen_of(mistakes, args)
    with (
        tempfile.TemporaryDirectory(prefix="planted-", ignore_cleanup_errors=True) as name,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        Path(name).chmod(0o755)
        trial = Trial(Path(name))
        if args.anew:
            reach = Reach(args.anew)
            found = list(pool.map(lambda each: trial.search(each, reach.tests(each)), chosen))
            write([*(each for each in mistakes if each not in chosen), *found])
            return 0
        missed = replay(pool, trial, chosen)
    sys.stdout.write(f"{len(chosen)} mistakes, {missed} missed\n")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
