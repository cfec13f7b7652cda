"""Every fault through the real client: how a run ends, what it costs, and that it does end.

``python -m pytest tests/test_fault_matrix.py -k table -m long -s`` prints the published table.
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "situation"), CELLS)
def test_a_run_ends_as_it_should(name: str, situation: Situation) -> None:
    """MO-08, MO-09, TL-03, PL-04: in both ways of running, and as is published.

    Status and code are the row's, with no more requests than the design allows; who completed has
    said so, and of a half answer nothing is in the history; every call has its one result; a
    watcher is not left waiting for the end of something.
    """
    expected = ROWS[name].expected[situation]
    shown = dict(zip(HEADS, published_row(name), strict=True))

    for way in WAYS:
        run = seen(name, situation, way)
        assert (run.ending.status, run.ending.code) == (expected.status, expected.code)
        assert run.ending.requests <= expected.requests
        assert str(run.ending) == shown[situation]
        assert (run.ending.status == "completed") == (run.output == "Done.")
        assert not any("half-finished" in message.text for message in run.messages)
        assert illegal(run.messages) == []
        assert run.events or way != "astream"
        assert unclosed(run.events) == []


def published_row(name: str) -> list[str]:
    """Read a row of the published table."""
    table = published().split("tests/test_fault_matrix.py -k table", 1)[1]
    row = next(line for line in table.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in row.split("|")[2:-1]]


@pytest.mark.long
def test_the_table_is_what_is_published() -> None:
    """What is published is what was measured."""
    head = ["fault", *HEADS.values()]
    lines = [head, ["---"] * len(head)]
    for name, row in ROWS.items():
        cells = [
            str(seen(name, situation, "invoke").ending) if situation in row.expected else ""
            for situation in HEADS
        ]
        lines.append([name, *cells])
    printed = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    sys.stdout.write(f"\n{printed}\n")

    assert printed in published()
