"""Learning helps: the second pass over the same tasks repeats fewer failures (EV-06)."""

from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from tests.learning.arms import CUT_OUT, OBSERVING, OFF, ON, Arm
from tests.learning.families import FAMILIES, ATask
from tests.learning.passes import Passes, carried_out, learning_settings
from tests.learning.student import BLOCK

from daruma.tools.evolution import counterfactual_lessons

FEW = tuple(
    ATask(family, "north")
    for family in FAMILIES
    if family.name in ("rounding", "gateway", "export", "migration", "greeting")
)
"""One of each kind, by one mode and the other; the last one's text is of no use."""


def passes_in(arm: Arm, folder: Path, store: InMemoryStore | None = None) -> Passes:
    given = learning_settings("ours", **arm.evolution)
    return carried_out(arm.model(script={}), FEW, given, store or InMemoryStore(), folder)


@pytest.mark.long
def test_the_second_pass_repeats_what_no_text_helps_against_alone(tmp_path: Path) -> None:
    """EV-06: and takes fewer requests."""
    found = passes_in(ON, tmp_path)

    assert found.failures == (5, 1)
    assert found.repeated == 1
    assert found.last[-1].failed
    assert found.requests[1] < found.requests[0]
    assert all(each.lessons is None for each in found.first)
    assert all(each.lessons and each.lessons.pitfalls for each in found.last)


@pytest.mark.long
def test_it_is_the_block_that_helps(tmp_path: Path) -> None:
    """EV-06: with it cut out of the requests, nothing is better than before."""
    found = passes_in(CUT_OUT, tmp_path)

    assert found.failures == (5, 5)
    assert all(each.lessons and each.lessons.pitfalls for each in found.last)


@pytest.mark.long
@pytest.mark.parametrize("arm", [OBSERVING, OFF], ids=lambda arm: arm.name)
async def test_where_nothing_is_fed_back_all_is_as_before(arm: Arm, tmp_path: Path) -> None:
    """EV-03: but while observing it is on record what would have been given."""
    store = InMemoryStore()

    found = passes_in(arm, tmp_path, store)

    assert found.failures == (5, 5)
    assert found.requests[0] == found.requests[1]
    assert not any(each.lessons for each in (*found.first, *found.last))
    would = await counterfactual_lessons(store, "ours", 100)
    assert len(would) == (len(FEW) if arm is OBSERVING else 0)
    assert {each.goal for each in would} <= {task.goal for task in FEW}


def test_nothing_of_observing_is_in_any_request(tmp_path: Path) -> None:
    """EV-03: the task is asked for as if there were no experience."""
    model = OBSERVING.model(script={})

    carried_out(model, FEW[:2], learning_settings("ours"), InMemoryStore(), tmp_path)

    assert not any(BLOCK.search(message.text) for sent in model.requests for message in sent)
