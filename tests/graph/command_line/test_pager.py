"""Paging: all of it goes to the pager, or else to the terminal."""

import os
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from daruma.graph.command_line.output import Line, Paper, paged

LINES = [Line("payload", f"line {number} é") for number in range(300)]


def test_a_pager_gets_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is printed beside."""
    monkeypatch.setenv("PAGER", f"tee '{tmp_path}/all of it'")
    file = StringIO()

    paged(Paper(Console(file=file)), LINES)

    assert (tmp_path / "all of it").read_text(encoding="utf-8").count("line") == 300
    assert file.getvalue() == ""


@pytest.mark.parametrize("pager", ["/no/such/pager", "false"])
def test_without_a_pager_it_is_printed(pager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it fails."""
    monkeypatch.setenv("PAGER", pager)
    file = StringIO()

    paged(Paper(Console(file=file)), LINES)

    assert "line 299 é" in file.getvalue()


def test_a_pager_that_can_not_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quote that is never closed is no bug; there is another pager, or none."""
    monkeypatch.setenv("PAGER", "'less")
    monkeypatch.setenv("PATH", os.devnull)
    file = StringIO()

    paged(Paper(Console(file=file)), LINES)

    assert "line 299 é" in file.getvalue()
