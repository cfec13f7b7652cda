"""A plan under review shows everything that will be done."""

from tests.parts import a_phase

from daruma.graph.command_line.output import Line
from daruma.graph.command_line.questions import plan_lines


def test_a_phase_shows_who_does_it_after_what_and_how_it_is_undone() -> None:
    """PL-02: a person confirms it all, commands included."""
    phase = a_phase(
        "p2", "p1", title="Build", expert="developer", rollback="snapshot",
        rollback_command="make clean", validation_command="make check", settles="p1",
        conflicts=("a.py", "b.py"),
    )  # fmt: skip

    assert plan_lines([phase.to_dict()]) == [
        Line("line", "1. Build"),
        Line("note", "after: p1"),
        Line("note", "by: developer"),
        Line("note", "checked with: make check"),
        Line("note", "undone with: make clean"),
        Line("note", "if it fails: all files are put back"),
        Line("note", "settles the conflicts of: p1"),
        Line("note", "in conflict: a.py, b.py"),
    ]
