"""The alarm on a few thousand traces: never on honest work, and soon on every loop."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from random import Random

import pytest
from tests.pages import published
from tests.state.traces.endless import ENDLESS
from tests.state.traces.honest import HONEST
from tests.state.traces.trace import Turn, runs_before_alarm

from daruma.state.mode import Mode

EACH = 50
"""Traces of a class in each mode."""
MODES: tuple[Mode, ...] = ("react", "plan_exec")
MOST = 200


@cache
def honest_alarms(kind: str, mode: Mode) -> int:
    """Count the traces of honest work that an alarm ended."""
    traces = (HONEST[kind](Random(f"{kind}{n}")) for n in range(EACH))  # noqa: S311  # no secret
    return sum(runs_before_alarm(trace, mode) is not None for trace in traces)


@cache
def rounds_run(kind: str, mode: Mode) -> list[float]:
    """Return how many rounds of each trace were run; before half of them went honest work."""
    found = []
    for n in range(EACH):
        rng = Random(f"{kind}{n}")  # noqa: S311  # no secret
        before = list(islice(HONEST["exploring: many files"](rng), (n % 2) * rng.randint(1, 6)))
        endless: Iterator[Turn] = chain(before, islice(ENDLESS[kind].turns(rng), MOST))
        ran = runs_before_alarm(endless, mode)
        assert ran is not None, f"{kind} {n} went on for ever"
        found.append((ran - len(before)) / ENDLESS[kind].round)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", HONEST)
def test_honest_work_raises_no_alarm(kind: str, mode: Mode) -> None:
    """RE-01 and RE-02: what changes, or is new, is progress."""
    assert honest_alarms(kind, mode) == 0


@pytest.mark.sampled(9)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ENDLESS)
def test_what_leads_nowhere_is_soon_ended(kind: str, mode: Mode) -> None:
    """RE-01 and RE-02: before it is gone through a fourth time, and not before a second."""
    ran = rounds_run(kind, mode)

    assert max(ran) <= 3
    assert min(ran) > 1


@pytest.mark.long
def test_the_table_is_what_is_published() -> None:
    """``python -m pytest tests/state/test_alarm_on_traces.py -k table -m long -s`` prints it."""
    table = [HEAD, *map(honest_row, families(HONEST)), *map(endless_row, families(ENDLESS))]
    print("", *table, "", sep="\n")  # noqa: T201  # it is the point

    pages = published()

    assert [line for line in table if line not in pages] == []


HEAD = """\
| traces | number | ended | rounds run: react | plan_exec, team_collab |
|---|---|---|---|---|"""


def families(kinds: Iterable[str]) -> dict[str, list[str]]:
    """Return the kinds by what stands before the colon."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        found.setdefault(kind.partition(":")[0], []).append(kind)
    return found


def told(family: str, kinds: Sequence[str], ended: int) -> str:
    """Return the beginning of a line."""
    names = ", ".join(kind.partition(": ")[2] for kind in kinds)
    return f"| {family}: {names} | {EACH * len(MODES) * len(kinds)} | {ended} |"


def honest_row(family: str) -> str:
    """Return the line of a family of honest work."""
    kinds = families(HONEST)[family]
    return (
        told(family, kinds, sum(honest_alarms(k, mode) for k in kinds for mode in MODES)) + " | |"
    )


def endless_row(family: str) -> str:
    """Return the line of a family of loops and dead ends, with the most rounds that were run."""
    kinds = families(ENDLESS)[family]
    ran = [[run for kind in kinds for run in rounds_run(kind, mode)] for mode in MODES]
    return told(family, kinds, sum(map(len, ran))) + "".join(f" {max(r):.3g} |" for r in ran)
