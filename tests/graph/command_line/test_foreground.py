"""A person's own programs: Ctrl-C is theirs while they have the terminal."""

import os
import signal
import sys

import pytest

from daruma.graph.command_line.output import in_foreground

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
