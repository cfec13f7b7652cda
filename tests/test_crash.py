"""Killed at any moment and resumed, a run ends as if it had never been killed (DU-01, DU-06)."""

import random
from pathlib import Path

import pytest
from tests.crash.scenes import SCENES
from tests.crash.sweep import difference, lives, moments, points, swept, untouched

from daruma.graph.machine import TABLE

SOME = 2
"""Of the moments before and after a write, those that the suite tries for each scene."""


@pytest.mark.long
def test_the_scenes_pass_through_every_node(postgres_url: str, tmp_path: Path) -> None:
    """So that the sweep below leaves no node out."""
    few = ["paid", "mended", "fallen", "held", "asked", "crowded", "team", "spent", "replanned"]
    few += ["delegated"]
    walked = [untouched(postgres_url, tmp_path, scene)["seen"]["nodes"] for scene in few]

    assert set().union(*walked) - {"__start__"} == set(TABLE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "number", [pytest.param(SOME, id="some"), pytest.param(None, id="all", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("scene", SCENES)
def test_a_killed_run_ends_as_if_it_had_not_been(
    postgres_url: str, tmp_path: Path, scene: str, number: int | None
) -> None:
    """Status, budgets, usage, phases, history, files and payments are the same (BU-03, DU-01).

    At a random moment, and before and after a write: at some of them, or at each.
    """
    whole = untouched(postgres_url, tmp_path, scene)
    at_writes = points(whole)
    if number is not None:
        at_writes = random.Random(scene).sample(at_writes, number)  # noqa: S311 - no secret

    killed = swept(postgres_url, tmp_path, scene, [*at_writes, *moments(whole, 1)])

    seen = whole["seen"]
    assert (seen["status"], seen["code"], seen["file"]) == SCENES[scene].ends
    assert [life["ended"] for life in killed if life["when"] in at_writes] == [-9] * len(at_writes)
    assert [found for life in killed if (found := difference(life, whole))] == []


@pytest.mark.long
@pytest.mark.parametrize(("death", "said"), [(-2, "paid"), (-3, "A person says that pay took")])
def test_a_call_that_was_approved_is_paid_once(
    postgres_url: str, tmp_path: Path, death: int, said: str
) -> None:
    """DU-06: killed before and after the tool did its work, what became of it is asked.

    Its approval is not asked for again, and it is never paid twice.
    """
    whole = untouched(postgres_url, tmp_path, "paid")

    (killed,) = lives(postgres_url, tmp_path, "paid", [str(death)])

    assert (killed["ended"], whole["seen"]["replies"], killed["seen"]["doubts"]) == (-9, 3, 1)
    assert killed["seen"]["paid"] == whole["seen"]["paid"] == ["5", "7"]
    assert any(text.startswith(said) for kind, text in killed["seen"]["messages"] if kind == "tool")
    assert difference(killed, whole) == {}
