"""The work of one more step does not grow with the steps before it."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import FrameType

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from tests.parts import a_context, a_state, a_task, settings

from daruma.nodes.compress import compress
from daruma.nodes.main import main
from daruma.state.channels import State, Update
from daruma.state.events import Event
from daruma.state.messages import Messages, reduce_messages
from daruma.state.steps import Compaction, Crowded, append_steps
from daruma.state.usage import Role, Usage
from daruma.tools.calls import Tool
from daruma.tools.context import Answer, Context, Sampling
from daruma.tools.model_requests import ESTIMATE, sendable
from daruma.tools.window._view import view

LONG = 500
SHORT = 50


def look(number: int) -> str:
    """Look something up."""
    return f"It is {number}."


class Looks:
    """An ``Ask`` that sends each request as it is sent in earnest, and has another look taken."""

    def __init__(self) -> None:
        self.number = 0
        self.left_out = 0

    async def __call__(  # an Ask
        self,
        node: str,  # noqa: ARG002
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        tools: Sequence[Tool] = (),  # noqa: ARG002
        sampling: Sampling | None = None,  # noqa: ARG002
        emit: Callable[[Event], None],  # noqa: ARG002
    ) -> Answer:
        self.number += 1
        assert len(sendable(messages)) == 2 * self.number - self.left_out
        assert call == self.number - 1
        asked = {"name": "look", "args": {"number": self.number}, "id": "c"}
        return Answer(AIMessage("", tool_calls=[asked]), Usage(role=role, model="stub"))


def gone_on(state: State, update: Update, more: str = "") -> State:
    """Return the state with an answer, and with the results of its calls."""
    answer = update["messages"][0]
    assert isinstance(answer, AIMessage)
    results: Messages = [
        ToolMessage(
            f"{call['args']}{more}", tool_call_id=str(call["id"]), id=f"{answer.id}:{call['id']}"
        )
        for call in answer.tool_calls
    ]
    messages = reduce_messages(state.messages, [update["messages"]])
    return replace(
        state,
        messages=reduce_messages(messages, [results]),
        steps=append_steps(state.steps, [update["steps"]]),
    )


async def counted(
    node: Callable[[State, Context], Awaitable[Update]], state: State, context: Context
) -> tuple[int, Update]:
    """Return how many functions of Python a node runs, and go on with generators."""
    count = 0

    def noted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(noted)
    try:
        update = await node(state, context)
    finally:
        sys.setprofile(before)
    return count, update


async def test_a_late_step_takes_no_more_work_than_an_early_one() -> None:
    """Nothing goes through all that was said and done before, but in one piece."""
    task = a_task(limits={"think": LONG + 1, "turn": LONG + 1})
    state = a_state(task=task, messages=[HumanMessage("Do it", id="u")])
    given = settings(evolution={"enabled": False})
    context = replace(a_context(tools=[look], given=given), ask=Looks())
    work = []
    for _ in range(LONG):
        count, update = await counted(main, state, context)
        work.append(count)
        state = gone_on(state, update)

    assert len(state.steps) == LONG
    assert work[-1] <= work[SHORT] + 3


async def test_nor_does_one_within_a_bound_whose_beginning_is_shown_shorter() -> None:
    """Between two compactions no message is shortened, mended or counted a second time."""
    task = a_task(limits={"think": LONG + 1, "turn": LONG + 1})
    state = a_state(task=task, messages=[HumanMessage("Do it", id="u")])
    given = settings(evolution={"enabled": False}, llm={"context_window_tokens": 1_000_000})
    looks = Looks()
    context = replace(a_context(tools=[look], given=given), ask=looks)
    work = []
    for number in range(LONG):
        if number == SHORT // 2:
            compaction = compaction_of(state)
            state = replace(state, compaction=compaction)
            looks.left_out = compaction.summarised - 1  # the summary is a message, too
        count, update = await counted(main, state, context)
        work.append(count)
        state = gone_on(state, update)

    assert len(state.steps) == LONG
    assert work[-1] <= work[SHORT] + 3


@pytest.mark.long
async def test_nor_does_a_compaction_of_a_long_history() -> None:
    """Only what came since the last one is shortened, and counted as it is sent then."""
    task = a_task(limits={"think": LONG + 1, "turn": LONG + 1})
    state = a_state(task=task, messages=[HumanMessage("Do it", id="u")])
    given = settings(evolution={"enabled": False}, llm={"context_window_tokens": 1_000_000})
    context = replace(a_context(tools=[look], given=given), ask=Looks())
    work = []
    for number in range(LONG):
        _, update = await counted(main, state, context)
        state = gone_on(state, update, more=f" {number} words" * 500)
        if number % 10 == 9:
            budget = ESTIMATE.of_history(view(state.messages, state.compaction))
            crowded = Crowded(node="main", budget=budget, fixed=100)
            count, update = await counted(compress, replace(state, crowded=crowded), context)
            work.append(count)
            cost = update["steps"][0].context_cost
            assert cost is not None
            assert [*cost.saved] == ["prune"]
            state = replace(state, compaction=update["compaction"])

    # The latest part is a share of all that is sent, so it holds some more rounds by then.
    assert work[-1] <= 1.5 * work[5]


def compaction_of(state: State) -> Compaction:
    """Return one that summarises the older half of a history, and prunes it all."""
    half = len(state.messages) // 4 * 2  # where a result stands
    return Compaction(
        summary="I looked.",
        summarised_through=str(state.messages[half].id),
        summarised=half,
        kept=("u",),
        pruned_through=str(state.messages[-1].id),
    )
