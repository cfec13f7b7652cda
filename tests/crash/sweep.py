"""Killing a scripted task in many places, by as many drivers at once as there are processors."""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from random import Random
from subprocess import PIPE
from typing import Any

from tests.warm import run

ROOT = Path(__file__).parents[2]

Life = dict[str, Any]
"""What the driver tells of one task that was killed and taken up: see driver.py."""


def lives(url: str, home: Path, scene: str, deaths: Sequence[str]) -> list[Life]:
    """Run the driver over some deaths and return what it saw of each."""
    done = run(
        ["-m", "tests.crash.driver", url, str(home), scene, *deaths],
        imports="tests.crash.scenes",
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        seconds=60 * len(deaths),
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def untouched(url: str, home: Path, scene: str) -> Life:
    """Run a task that nobody kills."""
    (life,) = lives(url, home, scene, ["-1"])
    return life


def swept(url: str, home: Path, scene: str, deaths: Sequence[str]) -> list[Life]:
    """Kill it in each of these ways; a few are soon done by one driver, which takes as long."""
    drivers = min(os.cpu_count() or 1, 1 + len(deaths) // 8)
    with ThreadPoolExecutor(drivers) as pool:
        parts = pool.map(lambda n: lives(url, home, scene, deaths[n::drivers]), range(drivers))
        return list(chain.from_iterable(parts))


def points(whole: Life) -> list[str]:
    """Name the moments before and after each write to the database."""
    return [str(point) for point in range(2 * whole["writes"])]


def moments(whole: Life, number: int, seed: int = 0) -> list[str]:
    """Draw moments at random from the length of a whole run."""
    drawn = Random(seed)  # noqa: S311 - no secret
    return [f"~{drawn.uniform(0.01, whole['seconds']):.4f}" for _ in range(number)]


def difference(life: Life, whole: Life) -> dict[str, Any]:
    """Return what a task that was killed has left otherwise than one that was not.

    Where a person said that a call had happened, its result is lost: then the texts of results,
    and the tokens that they cost, are not compared.
    """
    skipped = {"doubts"} | ({"messages", "usage"} if life["seen"]["doubts"] else set())
    return {
        name: [value, whole["seen"][name]]
        for name, value in life["seen"].items()
        if name not in skipped and value != whole["seen"][name]
    }
