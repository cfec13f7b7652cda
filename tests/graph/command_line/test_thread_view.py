"""Savepoints are listed with what they are states of, and how to go back to them."""

from datetime import UTC, datetime

from tests.parts import a_savepoint

from daruma.graph.command_line._output import Line
from daruma.graph.command_line._thread_view import savepoint_lines, savepoint_values

NOON = datetime(2026, 1, 2, 12, 0, 0).astimezone()
TITLES = {("t/1", None): "Do\nit", ("t/1", "p1"): "Build"}


def test_each_savepoint_is_a_line() -> None:
    """What, when, and what is lacking; then the command, ready to be pasted."""
    kept = [
        a_savepoint("1", snapshot="7f", at=NOON.timestamp()),
        a_savepoint("1/p1", snapshot=None, note="the disk was full", at=NOON.timestamp()),
        a_savepoint("1/p1/done", snapshot="8a", at=NOON.timestamp()),
    ]

    lines = savepoint_lines("my thread", kept, TITLES, snapshots=True)

    assert lines == [
        Line("ok", "1  before Do it", "2026-01-02 12:00:00 · 7f"),
        Line("bad", "1/p1  before Build", "2026-01-02 12:00:00 · the disk was full"),
        Line("ok", "1/p1/done  after Build", "2026-01-02 12:00:00 · 8a"),
        Line("line", "daruma undo 'my thread' --to ID", "goes there"),
    ]


def test_where_a_title_is_not_known_the_id_stands() -> None:
    """Rather than nothing."""
    lines = savepoint_lines("t", [a_savepoint("1/p1")], {})

    assert lines[0].text == "1/p1  before phase p1"


def test_a_thread_without_savepoints_says_why() -> None:
    """No command is offered that could not work."""
    (line,) = savepoint_lines("t", [], {})

    assert "no task of this thread had a workspace" in line.text


def test_savepoints_are_told_to_programs() -> None:
    """All that is stored, and the title."""
    at = datetime.fromtimestamp(5, UTC).timestamp()

    assert savepoint_values([a_savepoint("1/p1", snapshot="7f", at=at)], TITLES) == [
        {
            "id": "1/p1",
            "when": "phase",
            "task_id": "t/1",
            "phase_id": "p1",
            "what": "Build",
            "workspace": "/ws",
            "snapshot": "7f",
            "note": "",
            "at": 5.0,
        }
    ]
