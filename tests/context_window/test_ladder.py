"""Who summarises: the auxiliary model, the main one, rules; never the other way round.

``python -m pytest tests/context_window -k table -m long -s`` prints the published table.
"""

import sys

import pytest
from tests.context_window.ladder_rows import ROWS, seen
from tests.fault_matrix.runs import WAYS
from tests.pages import published


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ROWS)
def test_the_ladder_is_gone_down_and_never_up(name: str, way: str) -> None:
    """CX-02, CX-03: whoever fails, the task goes on, within its budget."""
    row = ROWS[name]

    found = seen(name, way)

    assert (found.asked, found.by, found.status) == (row.asked, row.by, "completed")
    assert found.size <= 1800


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ROWS)
def test_what_was_said_early_is_known_after_it(name: str) -> None:
    """The first message and the latest stay; what is between, a model's summary tells."""
    known = set(seen(name, "invoke").output.replace(",", "").split())

    assert {"NEEDLE-0=v0", "NEEDLE-33=v33"} <= known
    assert ("NEEDLE-9=v9" in known) == (ROWS[name].by != "rules")


def table() -> str:
    """One row for each situation: who is asked, and who has made the summary."""
    lines = ["| the auxiliary model | asked for a summary, in turn | made by |", "|---|---|---|"]
    for name in ROWS:
        found = seen(name, "invoke")
        lines.append(f"| {name} | {found.asked} | {found.by} |")
    return "\n".join(lines)


@pytest.mark.long
def test_the_table_is_what_is_published() -> None:
    """What is published is what was measured."""
    printed = table()
    sys.stdout.write(f"\n{printed}\n")

    assert printed in published()
