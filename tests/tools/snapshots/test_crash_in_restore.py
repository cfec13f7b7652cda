"""A restore that dies anywhere is finished by the next one who comes (RO-06)."""

import json
import os
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from tests.snapshot_crash import EDITS
from tests.snapshot_fuzz.rounds import in_memory
from tests.warm import run

ROOT = Path(__file__).parents[3]

Deaths = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=[4, pytest.param(1, marks=pytest.mark.long)])
def every(request: pytest.FixtureRequest) -> int:
    """Of so many steps one is died at, and at the first and the last."""
    return int(request.param)


@pytest.fixture(scope="module")
def deaths(every: int) -> Deaths:
    """What came of restores that died at these steps, in processes of their own, by the way."""
    with in_memory() as folder:
        done = run(
            ["-m", "tests.snapshot_crash", str(folder), str(every)],
            cwd=ROOT,
            env={**os.environ, "DARUMA_DATA_DIR": str(folder / "data")},
            stdout=PIPE,
            text=True,
        )
    assert done.returncode == 0
    found: Deaths = {}
    for line in done.stdout.splitlines():
        each = json.loads(line)
        found.setdefault(each["way"], []).append(each)
    return found


def test_killed_at_any_step_a_restore_is_finished_exactly_and_can_be_undone(
    deaths: Deaths, every: int
) -> None:
    """Before the intent nothing has changed; from then on recovery comes to the goal."""
    first, *between, last = deaths["once"]

    assert (first["died"], first["recovered"], first["state"]) == (True, False, "before")
    assert (last["died"], last["recovered"], last["state"]) == (True, False, "goal")
    assert len(between) * every > 60
    assert [each for each in between if each["state"] != "goal" or not each["exact"]] == []
    assert [each for each in between if not (each["died"] and each["redone"])] == []


def test_killed_twice_a_restore_is_finished_exactly(deaths: Deaths, every: int) -> None:
    """A recovery that dies is recovered from like a restore."""
    _, *found = deaths["twice"]

    assert sum(each["again"] for each in found) * every > 40
    assert [each for each in found if each["state"] != "goal"] == []
    assert [each for each in found if each["recovered"] and not each["exact"]] == []


def test_what_a_person_does_between_crash_and_recovery_stays_and_is_reported(
    deaths: Deaths,
) -> None:
    """Neither as before nor as the goal has it: it is somebody's, and is left."""
    _, *found, _ = deaths["edited"]

    assert [each for each in found if not each["edits"] or each["exact"]] == []
    for each in found:
        named = {line.partition(":")[0] for line in each["left"]}
        assert named == {os.fsdecode(name) for name in EDITS}, each


@pytest.mark.parametrize("way", ["take", "note", "restore"])
def test_whoever_comes_next_finishes_it_first(deaths: Deaths, way: str) -> None:
    """A half-way state is never taken for a state of the workspace."""
    (told,) = deaths[way]

    assert (told["died"], told["state"], told["open"]) == (True, "goal", False)
