"""What all nodes of a run work with is made once."""

import sys
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from tests.parts import settings
from tests.scripted_runs import RecordingModel, call, calls, say, shout
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.scope import CommonGround
from daruma.state.settings import Settings


def test_the_same_is_made_once_and_anything_else_anew() -> None:
    """Equal is not the same: it may be changed behind our back."""
    ground, first, equal = CommonGround(), [1], [1]
    made = ground.made(list, first)

    assert ground.made(list, first) is made
    assert ground.made(list, equal) is not made


def test_a_run_has_its_own_and_outside_of_any_nothing_is_kept() -> None:
    """Whatever hangs on a run ends with it."""
    ground = CommonGround()

    assert CommonGround.of(ground.noted(None)) is ground
    assert CommonGround.of({}) is not CommonGround.of({})


class Asked(InMemorySaver):
    """A saver that counts how often it is looked through for a place of its own."""

    looks = 0

    @override
    def __getattribute__(self, name: str) -> Any:
        if name == "journal_at":
            type(self).looks += 1
        return super().__getattribute__(name)


def looks_of(steps: int) -> int:
    """How often a saver was looked through in a run of so many steps."""
    Asked.looks = 0
    script = [*(calls(call("shout", text=str(n))) for n in range(steps)), say()]
    graph = build_graph(RecordingModel(script=script), [shout], Settings(), checkpointer=Asked())
    graph.invoke(
        {"messages": "hi", "mode": "react"},
        {"configurable": {"thread_id": "t"}},
        context=settings(),
    )
    return Asked.looks


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="looks at classes, which can not count")
def test_a_saver_is_looked_through_for_a_run_and_not_for_each_node() -> None:
    """Whether it is of a kind is asked of each of its attributes."""
    assert looks_of(8) == looks_of(2) > 0
