"""Patterns for file names mean what people expect of coding tools."""

import pytest

from daruma.tools.files.paths import Glob


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("src/**", "src/x/y", True),
        ("src/**", "src", False),
        ("./src/?.py", "src/a.py", True),
        ("*.{ts,tsx}", "x/a.tsx", True),
        ("*.{ts,tsx}", "x/a.js", False),
        ("{a,b}/{c,d}.py", "b/c.py", True),
        ("[ab].py", "b.py", True),
        ("*.PY", "a.py", False),
    ],
)
def test_a_pattern_fits_whole_paths(pattern: str, path: str, fits: bool) -> None:
    """Every kind of wildcard, with and without directories."""
    assert Glob(pattern).matches(path) is fits


def test_a_hostile_pattern_ends() -> None:
    """Many wildcards and alternatives neither run for ever nor fill the memory."""
    assert not Glob("**/" * 40 + "x").matches("a/" * 40 + "b")
    assert not Glob("{a,b}" * 40).matches("c")
