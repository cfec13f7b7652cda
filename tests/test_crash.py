"""Killed at any write to the database and resumed, a run ends as if it had never been killed."""

import json
import os
import random
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("crash_driver.py")
SEED = 20
SAMPLE = 24
"""Points tried in a normal run; ``LONG_TESTS=1 pytest tests/test_crash.py`` tries all of them."""


def lives(url: str, home: Path, points: list[int]) -> list[dict[str, Any]]:
    """Run the driver over some points and return what it saw, a dict for each."""
    done = run(
        [sys.executable, str(DRIVER), url, str(home), *map(str, points)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def untouched(postgres_url: str, tmp_path: Path) -> dict[str, Any]:
    """What a run shows that nobody kills."""
    return lives(postgres_url, tmp_path, [-1])[0]


def test_a_killed_run_ends_as_if_it_had_not_been(
    postgres_url: str, tmp_path: Path, untouched: dict[str, Any]
) -> None:
    """Status, budgets, usage, phases, history and files are the same (BU-03, DU-01).

    The commands of the script only set what they set, so that running one again shows nowhere.
    """
    every = list(range(2 * untouched["writes"]))
    short = sorted(random.Random(SEED).sample(every, SAMPLE))  # noqa: S311  # no secret

    resumed = lives(postgres_url, tmp_path, every if os.environ.get("LONG_TESTS") else short)

    assert untouched["seen"]["status"] == "completed"
    assert [life["ended"] for life in resumed] == [-9] * len(resumed)
    assert [life["point"] for life in resumed if life["seen"] != untouched["seen"]] == []
