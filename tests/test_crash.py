"""Killed at any write to the database and resumed, a run ends as if it had never been killed."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from operator import itemgetter
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from daruma.graph.machine import TABLE

DRIVER = Path(__file__).with_name("crash_driver.py")

ENDS = {
    "mended": ("completed", None, "right"),
    "undone": ("gave_up_after_reflections", "verification_failed", "undone"),
    "paid": ("completed", None, "a"),
    "fallen": ("completed", None, "right"),
    "restored": ("gave_up_after_reflections", "verification_failed", "right"),
    "held": ("gave_up_after_reflections", "verification_failed", "right"),
    "team": ("completed", None, "rightb"),
}
"""How each scene of the driver ends: status, code, and what the file holds."""


SHORT = ("mended", "undone", "paid", "fallen")
EVERY_POINT = "DARUMA_EVERY_POINT" in os.environ


def lives(url: str, home: Path, scene: str, points: list[int]) -> list[dict[str, Any]]:
    """Run the driver over some points and return what it saw, a dict for each."""
    done = run(
        [sys.executable, str(DRIVER), url, str(home), scene, *map(str, points)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def swept(url: str, home: Path, scene: str, points: list[int]) -> list[dict[str, Any]]:
    """The same, by as many drivers at once as there are processors."""
    drivers = os.cpu_count() or 1
    with ThreadPoolExecutor(drivers) as pool:
        parts = pool.map(lambda n: lives(url, home, scene, points[n::drivers]), range(drivers))
        return sorted(chain.from_iterable(parts), key=itemgetter("point"))


def test_the_scenes_pass_through_every_node(postgres_url: str, tmp_path: Path) -> None:
    """So that the sweep below leaves no node out."""
    walked = [lives(postgres_url, tmp_path, scene, [-1])[0]["seen"]["nodes"] for scene in ENDS]

    assert set().union(*walked) - {"__start__"} == set(TABLE)


@pytest.mark.parametrize("scene", ENDS)
def test_a_killed_run_ends_as_if_it_had_not_been(
    postgres_url: str, tmp_path: Path, scene: str
) -> None:
    """Status, budgets, usage, phases, history and files are the same (BU-03, DU-01).

    Every write is tried, before it and after it, where ``DARUMA_EVERY_POINT`` is set; else every
    third such point, and every ninth of the longer scenes.
    """
    (untouched,) = lives(postgres_url, tmp_path, scene, [-1])
    stride = 1 if EVERY_POINT else 3 if scene in SHORT else 9
    every = list(range(0, 2 * untouched["writes"], stride))

    resumed = swept(postgres_url, tmp_path, scene, every)

    seen = untouched["seen"]
    for life in resumed:
        paid = life["seen"].pop("paid", None)
        assert paid is None or set(paid) == set(seen["paid"])  # at least once: see the README
    seen.pop("paid", None)
    assert (seen["status"], seen["code"], seen["file"]) == ENDS[scene]
    assert [life["ended"] for life in resumed] == [-9] * len(every)
    assert [life["point"] for life in resumed if life["seen"] != seen] == []


@pytest.mark.parametrize(("scene", "point"), [("restored", -4), ("restored", -5), ("held", -5)])
def test_a_command_that_was_cut_short_shows_nowhere(
    postgres_url: str, tmp_path: Path, scene: str, point: int
) -> None:
    """RO-02, RO-04: a validation or rollback killed half-way begins again from where it began."""
    (untouched,) = lives(postgres_url, tmp_path, scene, [-1])

    (killed,) = lives(postgres_url, tmp_path, scene, [point])

    assert killed["ended"] == -9
    assert killed["seen"] == untouched["seen"]


@pytest.mark.parametrize(("point", "payments"), [(-2, ["5", "7"]), (-3, ["5", "5", "7"])])
def test_a_call_that_was_approved_is_not_asked_for_again(
    postgres_url: str, tmp_path: Path, point: int, payments: list[str]
) -> None:
    """Killed before and after the tool did its work: one yes each, and none without one.

    That it pays twice in the second case is what the effect journal is to end.
    """
    (untouched,) = lives(postgres_url, tmp_path, "paid", [-1])

    (killed,) = lives(postgres_url, tmp_path, "paid", [point])

    assert (killed["ended"], untouched["seen"]["replies"]) == (-9, 3)
    assert killed["seen"].pop("paid") == payments
    assert untouched["seen"].pop("paid") == ["5", "7"]
    assert killed["seen"] == untouched["seen"]
