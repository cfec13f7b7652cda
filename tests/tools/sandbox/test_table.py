"""The table of what each level stops, as it is printed in the README, from what is measured.

``python -m pytest tests/tools/sandbox -k table -s`` prints it.
"""

import sys

from tests.sandboxes import LEVELS, reached_at

from daruma.tools.sandbox.opening import WORDS


def table() -> str:
    """One row for each attempt, one column for each level."""
    head = ["attempt", *LEVELS]
    rows = [
        [words, *("open" if name in reached_at(level) else "stopped" for level in LEVELS)]
        for name, words in WORDS.items()
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def test_the_table_has_a_cell_for_all_that_is_tried() -> None:
    """Of the strongest level each cell says stopped."""
    printed = table()
    sys.stdout.write(f"\n{printed}\n")

    rows = printed.splitlines()[2:]
    assert len(rows) == len(WORDS)
    assert all(row.endswith("| stopped |") for row in rows)
