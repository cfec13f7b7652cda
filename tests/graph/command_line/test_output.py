"""How lines look on a terminal and elsewhere, and programs that have the terminal."""

import os
import signal
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from daruma.graph.command_line._output import Line, Paper, cut, in_foreground, paged

# --- Long texts: their ends are shown, and what is left out is counted.


def test_what_is_left_out_is_counted() -> None:
    """The lines that are shown and those that are counted are all there are."""
    lines = [Line("payload", str(number)) for number in range(500)]

    shown = cut(lines, 100)

    assert [shown[0], shown[-1]] == [lines[0], lines[-1]]
    (said,) = [line.text for line in shown if line.mark == "alarm"]
    assert said.startswith("400 lines are left out here")
    assert len(shown) == 101


def test_what_fits_is_whole() -> None:
    """Without a word about it."""
    lines = [Line("payload", str(number)) for number in range(100)]

    assert cut(lines, 100) == lines


# --- Paging: all of it goes to the pager, or else to the terminal.

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


@pytest.mark.parametrize("pager", [None, "less", "{work}/.venv/bin/less", ".venv/bin/less"])
def test_a_pager_is_none_of_the_workspaces(
    pager: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SE-01, C2: neither by PATH nor by name."""
    planted = tmp_path / ".venv" / "bin" / "less"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{planted.parent}:.:.venv/bin:")
    monkeypatch.delenv("PAGER", raising=False)
    if pager:
        monkeypatch.setenv("PAGER", pager.format(work=tmp_path))
    file = StringIO()
    paged(Paper(Console(file=file)), LINES)

    assert not (tmp_path / "canary").exists()
    assert "line 299 é" in file.getvalue()


# --- A person's own programs: Ctrl-C is theirs while they have the terminal.

CTRL_C = f"kill -INT {os.getpid()}; kill -INT $$"


def test_ctrl_c_is_the_programs_own() -> None:
    """A program that outlives it is waited for, and not killed with the terminal in its hands."""
    assert in_foreground(["sh", "-c", f"trap : INT; {CTRL_C}; exit 7"]) == 7


def test_a_program_that_ctrl_c_ends_has_ended() -> None:
    """It does not inherit that we leave Ctrl-C alone."""
    assert in_foreground([sys.executable, "-c", "import os; os.kill(os.getpid(), 2)"]) in (
        1,
        -signal.SIGINT,
    )


def test_afterwards_ctrl_c_is_ours_again() -> None:
    """Also where the program could not be started."""
    with pytest.raises(OSError, match="gone"):
        in_foreground(["/gone"])

    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
