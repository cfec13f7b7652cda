"""Format, lint and types: the same strictness for the code and its tests."""

import sys
from pathlib import Path
from subprocess import run

import pytest

ROOT = Path(__file__).parents[1]

CHECKS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy", ".src/daruma", "tests"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_the_code_is_clean(check: str) -> None:
    """Nothing is left for a reviewer that a machine can see."""
    done = run(
        [sys.executable, "-m", *CHECKS[check]],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
