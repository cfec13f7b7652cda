"""Whatever goes wrong is one line; a bug's traceback is kept in a file."""

from pathlib import Path

import psycopg

from daruma.graph.command_line.faults import complaint, kept
from daruma.graph.models.errors import ModelUnavailable
from daruma.state.storage import StorageUnavailable


def test_errors_for_people_are_said_as_they_are() -> None:
    """They are one clear line already."""
    assert complaint(ModelUnavailable("no key")) == "no key"
    assert complaint(StorageUnavailable("no database")) == "no database"


def test_a_lost_database_says_how_to_go_on() -> None:
    """DU-04: nothing is lost."""
    said = complaint(psycopg.OperationalError("server closed\nthe connection"))

    assert said is not None
    assert "server closed the connection" in said
    assert "daruma resume" in said


def test_a_bug_is_one_line_and_its_traceback_is_kept() -> None:
    """Never a bare traceback, and never a lost one."""
    error = ZeroDivisionError("planted")

    assert complaint(error) is None
    line = kept(error)

    file = Path(line.rsplit(" ", 1)[-1])
    assert "\n" not in line
    assert "ZeroDivisionError: planted" in file.read_text()
    file.unlink()
