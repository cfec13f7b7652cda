"""A call in doubt whose tool had asked in its own words is never told as failed (DU-06)."""

from typing import Any

import pytest
from langgraph.types import Command, interrupt
from tests.parts import memory
from tests.scripted_runs import call, calls, say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.state.errors import HoldLost
from daruma.state.settings import Settings

T: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize("reply", ["yes", {"sure": True}, {"answer": "yes"}])
def test_an_answer_to_a_tools_own_question_is_none_to_what_became_of_it(reply: Any) -> None:
    """The call was cut short after it was answered; the model is told that nobody knows."""
    paid = []

    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append((amount, interrupt({"sure": "?"})))
        raise HoldLost("t")

    script = {"main": [calls(call("pay", amount=5)), say()]}
    graph = build_graph(ScriptedChatModel(script=script), [pay], Settings(), checkpointer=memory())
    given: Any = {"messages": [("user", "Pay")], "mode": "react"}
    graph.invoke(given, T)
    (own,) = graph.get_state(T).interrupts
    with pytest.raises(HoldLost):
        graph.invoke(Command(resume={own.id: reply}), T)

    ended = graph.invoke(None, T)

    assert paid == [(5, reply)]
    (result,) = [each for each in ended["messages"] if each.type == "tool"]
    assert result.text.startswith("Error: outcome_unknown: pay was cut short")
