"""Every fault through the real client: how a run ends, what it costs, and that it does end.

``python -m pytest tests/test_fault_matrix.py -k table -s`` prints the published table.
"""

import sys

import pytest
from tests.fault_matrix.rows import ROWS, Situation
from tests.fault_matrix.runs import WAYS, seen
from tests.pages import published
from tests.scripted_runs import illegal, unclosed

CELLS: list[tuple[str, Situation]] = [
    (name, situation) for name, row in ROWS.items() for situation in row.expected
]
HEADS: dict[Situation, str] = {
    "always": "each time",
    "once": "the first time only",
    "backed": "each time, with a fallback model",
}
in_every_cell = pytest.mark.parametrize(("name", "situation"), CELLS)
both_ways = pytest.mark.parametrize("way", WAYS)


@both_ways
@in_every_cell
def test_a_run_ends_as_it_should(name: str, situation: Situation, way: str) -> None:
    """Status and code are the row's, and no more requests are made than the design allows."""
    expected = ROWS[name].expected[situation]

    ending = seen(name, situation, way).ending

    assert (ending.status, ending.code) == (expected.status, expected.code)
    assert ending.requests <= expected.requests


@in_every_cell
def test_streaming_is_no_second_class_path(name: str, situation: Situation) -> None:
    """MO-09: ``invoke`` and ``astream`` agree in status, code and number of requests."""
    endings = {seen(name, situation, way).ending for way in WAYS}

    assert len(endings) == 1


@both_ways
@in_every_cell
def test_nothing_ends_as_success_without_an_answer(
    name: str, situation: Situation, way: str
) -> None:
    """MO-08: who completed has said so; of a half answer nothing is in the history."""
    run = seen(name, situation, way)

    assert (run.ending.status == "completed") == (run.output == "Done.")
    assert not any("half-finished" in message.text for message in run.messages)


@both_ways
@in_every_cell
def test_the_history_stays_legal(name: str, situation: Situation, way: str) -> None:
    """TL-03: every call has its one result, whatever happened."""
    assert illegal(seen(name, situation, way).messages) == []


@in_every_cell
def test_what_was_opened_is_closed(name: str, situation: Situation) -> None:
    """PL-04: a watcher is never left waiting for the end of something."""
    events = seen(name, situation, "astream").events

    assert events
    assert unclosed(events) == []


def table() -> str:
    """One row for each fault: how the run ends, and how many requests it took."""
    head = ["fault", *HEADS.values()]
    lines = [head, ["---"] * len(head)]
    for name, row in ROWS.items():
        cells = [
            str(seen(name, situation, "invoke").ending) if situation in row.expected else ""
            for situation in HEADS
        ]
        lines.append([name, *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def test_the_table_is_what_is_published() -> None:
    """What is published is what was measured."""
    printed = table()
    sys.stdout.write(f"\n{printed}\n")

    assert printed in published()
