"""Savepoints are listed with what they are states of, and how to go back to them."""

from datetime import datetime

from tests.parts import a_savepoint

from daruma.graph.command_line._output import Line
from daruma.graph.command_line._thread_view import savepoint_lines

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
        Line("line", "daruma undo 'my thread' --to ID", "goes there", whole=True),
    ]


def test_where_a_title_is_not_known_the_id_stands() -> None:
    """Rather than nothing."""
    lines = savepoint_lines("t", [a_savepoint("1/p1")], {})

    assert lines[0].text == "1/p1  before phase p1"
