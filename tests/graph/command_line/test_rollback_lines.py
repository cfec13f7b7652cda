"""What happens to the files of a workspace is told plainly, with what brings them back."""

import pytest

from daruma.graph.command_line.event_lines import lines_of
from daruma.graph.command_line.output import Line
from daruma.state.events import (
    Event,
    PhaseRollbackCompleted,
    PhaseRollbackFailed,
    PhaseRollbackStarted,
    RollbackDecided,
    SavepointWritten,
    WorkspaceDrifted,
)

DRIFT = "5 files have changed since this thread last looked, and not by its work"
KEPT = Line("note", "what was rolled back is kept: daruma undo THREAD --to 7f")


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            WorkspaceDrifted(paths=("a.py", "b\n.py"), total=5),
            [
                Line("alarm", DRIFT),
                Line("note", "a.py"),
                Line("note", "b .py"),
                Line("note", "and 3 more"),
            ],
        ),
        (SavepointWritten(savepoint_id="2", snapshot="7f"), []),
        (
            SavepointWritten(savepoint_id="2", snapshot=None, note="the disk is full"),
            [Line("note", "savepoint 2: the disk is full")],
        ),
        (
            PhaseRollbackStarted(phase_id="p1", command="snapshot"),
            [Line("head", "Rollback", "p1: all files as before the phase")],
        ),
        (
            PhaseRollbackStarted(phase_id="p1", command="git checkout ."),
            [Line("head", "Rollback", "p1: git checkout .")],
        ),
        (
            PhaseRollbackCompleted(phase_id="p1", exact=True, undo="7f"),
            [Line("ok", "rolled back: the files are exactly as before the phase"), KEPT],
        ),
        (
            PhaseRollbackCompleted(phase_id="p1", exact=False, left=("a.py: in use",)),
            [
                Line("bad", "rolled back, but not all files are as before the phase"),
                Line("bad", "a.py: in use"),
            ],
        ),
        (PhaseRollbackCompleted(phase_id="p1"), [Line("ok", "rolled back")]),
        (
            PhaseRollbackFailed(phase_id="p1", reason="exit 1", undo="7f"),
            [Line("bad", "not rolled back: exit 1"), KEPT],
        ),
        (
            RollbackDecided(phase_id="p1", decision="keep"),
            [Line("ok", "keep: the files stay as they are")],
        ),
    ],
)  # fmt: skip
def test_each_thing_has_its_lines(event: Event, lines: list[Line]) -> None:
    """RO-05, RO-07: what a person has to know of it, and no more."""
    assert lines_of(event.to_dict()) == lines


def test_of_many_files_the_number_is_told() -> None:
    """A screen is not filled with names."""
    left = tuple(f"{number}.py" for number in range(90))

    lines = lines_of(PhaseRollbackCompleted(phase_id="p", exact=False, left=left).to_dict())

    assert len(lines) == 22
    assert lines[-1] == Line("note", "and 70 more")
