"""Hostile workspaces: nothing that one holds runs outside of the sandbox, or hangs."""

import random
from pathlib import Path

import pytest
from tests.hostile.sweep import CASES, Place, carry_out

SOME = random.Random(26).sample(CASES, 1)  # noqa: S311 - of `python -m tests.hostile`, all of them
KNOWN = (("git lazy fetch", "cloned"), ("settings mcp", "cloned"), ("ignore stars", "cloned"))
"""What once got in."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("trap", "way"), [*KNOWN, *SOME], ids=str)
def test_nothing_gets_out_of_a_hostile_workspace(
    trap: str, way: str, tmp_path: Path, postgres_url: str
) -> None:
    """SE-01, SE-02, SE-05, SE-07, SE-08: no canary is touched, no key read, no run hangs."""
    assert carry_out(trap, way, Place(tmp_path / "case", postgres_url)) == []
