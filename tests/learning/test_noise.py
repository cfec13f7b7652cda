"""What teaches nothing does no harm: neither to outcomes nor to prompts (EV-03, EV-05)."""

from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from tests.learning.arms import OFF, ON
from tests.learning.misleading import THINGS, misleading, stale
from tests.learning.noise import under_noise

FEW = list(misleading(THINGS[:1]))


@pytest.mark.long
def test_later_passes_are_no_worse_than_without_learning(tmp_path: Path) -> None:
    """EV-05: no outage, chance, stranger or neighbour leads the next task astray."""
    on = under_noise(ON, FEW, InMemoryStore(), tmp_path / "on")
    off = under_noise(OFF, FEW, InMemoryStore(), tmp_path / "off")

    assert off.passes.failures == (5, 0, 0)
    assert on.passes.failures == (5, 0, 0)
    assert any(done.lessons for done in on.passes.last)
    told = {done.task.request: done.lessons for done in on.passes.last}
    assert all(told[task.goal] is None for task in FEW if task.kind == "neighbour")
    assert on.prompts == off.prompts
    assert on.variants == []


def test_what_has_become_wrong_leads_astray_once(tmp_path: Path) -> None:
    """EV-03: told in vain it is not sure enough any more."""
    on = under_noise(ON, list(stale(THINGS[:1])), InMemoryStore(), tmp_path)

    assert on.passes.failures == (1, 1, 0)
