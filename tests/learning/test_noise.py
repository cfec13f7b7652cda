"""What teaches nothing does no harm: neither to outcomes nor to prompts (EV-03, EV-05)."""

from pathlib import Path

from langgraph.store.memory import InMemoryStore
from tests.learning.arms import OFF, ON
from tests.learning.misleading import THINGS, misleading
from tests.learning.noise import under_noise

FEW = list(misleading(THINGS[:1]))


def test_the_second_pass_is_no_worse_than_without_learning(tmp_path: Path) -> None:
    """EV-05: no outage, chance, stranger or neighbour leads the next task astray."""
    on = under_noise(ON, FEW, InMemoryStore(), tmp_path / "on")
    off = under_noise(OFF, FEW, InMemoryStore(), tmp_path / "off")

    assert off.passes.failures == (5, 0)
    assert on.passes.failures == (5, 0)
    assert any(done.lessons for done in on.passes.second)
    told = {done.task.request: done.lessons for done in on.passes.second}
    assert all(told[task.goal] is None for task in FEW if task.kind == "neighbour")
    assert on.prompts == off.prompts
    assert on.variants == []
