"""What a model is told of a failure, and the action that it proposes (RE-04, RE-05, RE-08)."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.store.base import BaseStore, Op
from langgraph.store.memory import InMemoryStore
from tests.parts import a_context, a_failure, a_recovery, a_state, a_task, settings, taken
from tests.scripted_runs import shout
from typing_extensions import override

from daruma.state.channels import State
from daruma.state.failure import Failure, RecoveryAction, Strategy
from daruma.state.lessons import Experience, Tried
from daruma.state.text import unstorable_part
from daruma.tools.context import Context, visible_tools
from daruma.tools.evolution._recoveries import learn_recoveries
from daruma.tools.model_requests import ESTIMATE
from daruma.tools.recovery import LONGEST, action_in, learned_against, render_briefing

# --- What a model is told when it is asked for an action: the six parts of RE-04, bounded.

LOOP = Failure(code="llm_failure", node="main", message="it broke", tool="shout")
PARTS = ("Goal", "Progress", "Latest step", "Known facts", "Blockers", "Analysis", "Tools")


def told(state: State, stand_ins: tuple[str, ...] = ()) -> str:
    offer = visible_tools(state.task, a_context(tools=[shout]))
    return render_briefing(state, LOOP, offer, stand_ins)


def test_it_has_all_its_parts_in_order() -> None:
    """RE-04."""
    text = told(a_state())

    places = [text.index(f"{part}:") for part in PARTS]
    assert places == sorted(places)


def test_it_tells_what_was_done_and_found() -> None:
    """The latest step with what it came to, and results as facts."""
    call = {"name": "shout", "args": {"text": "x"}, "id": "c1"}
    messages = [
        HumanMessage("Do it"),
        AIMessage("I will.", tool_calls=[call]),
        ToolMessage("XX", tool_call_id="c1", name="shout"),
    ]
    steps = taken("recover", recovery=a_recovery("retry"))
    text = told(a_state(messages=messages, steps=steps, task=a_task(goal="Make noise")))

    expected = ("Make noise", "called shout({'text': 'x'})", "shout gave: XX", "shout: XX")
    assert [part for part in expected if part not in text] == []
    assert "it broke" in text
    assert "tried before: retry (llm_failure)" in text
    assert "Say it loudly." in text


def test_stand_ins_are_named() -> None:
    """RE-08a: candidates for another tool."""
    assert "could stand in for shout: whisper, cry" in told(a_state(), ("whisper", "cry"))


def test_failed_results_are_no_facts() -> None:
    """They are blockers."""
    failed = ToolMessage("no such file", tool_call_id="c1", name="shout", status="error")
    text = told(a_state(messages=[HumanMessage("Do it"), failed]))

    assert "no such file" not in text[text.index("Known facts:") : text.index("Blockers:")]


def test_a_long_history_makes_no_long_request() -> None:
    """A failure may be that the request was too long."""
    results = [
        ToolMessage("x" * 30_000, tool_call_id=f"c{n}", name="shout", id=str(n)) for n in range(50)
    ]
    task = a_task(goal="z" * 100_000)
    text = told(a_state(messages=[HumanMessage("y" * 100_000), *results], task=task))

    assert len(text) < 6_000


def test_the_errors_of_the_last_calls_are_blockers() -> None:
    """RE-04: beside the failure itself, which may say nothing of them."""
    call = {"name": "shout", "args": {"text": "x"}, "id": "c1"}
    answer = AIMessage("", tool_calls=[call], id="t/1:answer:0")
    failed = ToolMessage(
        "no such file", tool_call_id="c1", name="shout", id="t/1:answer:0:c1", status="error"
    )
    text = told(a_state(messages=[HumanMessage("Do it"), answer, failed]))

    blockers = text[text.index("Blockers:") : text.index("Analysis:")]
    assert "it broke" in blockers
    assert "no such file" in blockers


@pytest.mark.long
def test_however_many_tools_there_are_it_stays_small() -> None:
    """The request fits a context of 8,000 tokens."""

    def numbered(number: int) -> StructuredTool:
        return StructuredTool.from_function(shout, name=f"shout_{number}", description="word " * 99)

    offer = visible_tools(a_task(), a_context(tools=[numbered(n) for n in range(200)]))

    text = render_briefing(a_state(task=a_task(goal="word " * 9000)), LOOP, offer)

    assert ESTIMATE.of(text) < 6000
    assert [part for part in PARTS if f"{part}:" not in text] == []


# --- What worked before is done again only where it is known, sure, fed back and quickly told.

NEVER = pytest.param({"enabled": False, "observe_only": False}, id="off")
LOOKING_ON = pytest.param({"enabled": True, "observe_only": True}, id="looking on")


class Failing(InMemoryStore):
    """A store that does not answer."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error

    @override
    async def abatch(self, ops: Iterable[Op]) -> Any:
        if self.error:
            raise self.error
        return await asyncio.Future()


async def knowing(
    strategy: Strategy = "retry",
    worked: int = 3,
    failed: int = 0,
    *,
    owner: str = "o",
    actor: str = "main",
) -> InMemoryStore:
    """A store that holds what so many tasks tried against ``a_failure``."""
    store = InMemoryStore()
    for number in range(worked + failed):
        tried = Tried(
            actor=actor,
            signature=a_failure().signature,
            strategy=strategy,
            by="model",
            worked=number < worked,
        )
        experience = Experience(
            task_id=f"t/{number}",
            owner=owner,
            mode="react",
            status="completed",
            goal="g",
            at=99.0,
            tried=(tried,),
        )
        await learn_recoveries(experience, store)
    return store


def with_store(store: BaseStore | None, **evolution: Any) -> Context:
    given = settings(evolution={"observe_only": False} | evolution)
    return replace(a_context(given=given), store=store)


async def against(
    context: Context, failure: Failure | None = None, owner: str = "o", **task: Any
) -> RecoveryAction | None:
    state = a_state(task=a_task(experience_owner=owner, **task))
    return await learned_against(state, failure or a_failure(), context, seconds=0.05)


async def test_what_worked_against_the_same_failure_is_found() -> None:
    """RE-08: and it is on record that it was learned."""
    context = with_store(await knowing())

    found = await against(context)
    assert found == RecoveryAction(strategy="retry", confidence=0.8, by="learned")
    assert await against(context, a_failure(message="other")) is None


@pytest.mark.parametrize(
    ("strategy", "worked", "failed"),
    [("retry", 2, 0), ("retry", 3, 1), ("escalate", 8, 0), ("give-up", 8, 0)],
)
async def test_what_is_not_sure_or_would_ask_a_person_is_not_learned(
    strategy: Strategy, worked: int, failed: int
) -> None:
    """A model may know better."""
    assert await against(with_store(await knowing(strategy, worked, failed))) is None


async def test_another_owners_and_another_actors_are_not_seen() -> None:
    """EV-04: neither in another workspace, nor by the planner or an expert."""
    context = with_store(await knowing())

    assert await against(context, owner="p") is None
    assert await against(context, expert="tester") is None
    assert await against(with_store(await knowing(actor="tester")), expert="tester")
    assert await against(with_store(await knowing(actor="plan"))) is None


@pytest.mark.parametrize("evolution", [NEVER, LOOKING_ON])
async def test_nothing_is_fed_back_that_settings_do_not_want_to_be(evolution: Any) -> None:
    """EV-03: to look on is the default. Without a store nothing is known, and nothing fails."""
    assert await against(with_store(await knowing(), **evolution)) is None
    assert await against(with_store(None)) is None


@pytest.mark.parametrize(
    "error",
    [OSError("no store"), None, asyncio.CancelledError()],
    ids=["fails", "hangs", "is being closed"],
)
async def test_a_store_that_fails_or_hangs_is_passed_over(error: BaseException | None) -> None:
    """RE-05: recovery itself never raises, and is not held up."""
    assert await against(with_store(Failing(error))) is None


class Stubborn(InMemoryStore):
    """A store that does not answer, and does not heed that nobody waits for it any more."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.release = asyncio.Event(), asyncio.Event()

    @override
    async def abatch(self, ops: Iterable[Op]) -> Any:
        self.asked.set()
        while not self.release.is_set():
            with suppress(asyncio.CancelledError):
                await self.release.wait()
        return await super().abatch(ops)


async def test_a_store_that_can_not_be_called_off_is_passed_over() -> None:
    """RE-05: the answer comes before the store does."""
    store = Stubborn()

    assert await against(with_store(store)) is None

    assert not store.release.is_set()
    store.release.set()


async def test_a_cancellation_is_no_failure_of_what_was_learned() -> None:
    """Cancellation passes through all of it."""
    store = Stubborn()
    task = asyncio.ensure_future(against(with_store(store)))
    await store.asked.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    store.release.set()


# --- An action is read out of whatever a model answers; what is in doubt is no action, or no
# trust.

FULL: dict[str, Any] = {
    "strategy": "parameter-adjustment",
    "reasoning": "It was misspelt.",
    "action": {"tool_name": "view", "parameters": {"path": "a"}, "escalation_message": "Which?"},
    "expected_outcome": "The file is shown.",
    "confidence": 0.9,
}
READ = RecoveryAction(
    strategy="parameter-adjustment",
    reasoning="It was misspelt.",
    tool_name="view",
    parameters={"path": "a"},
    escalation_message="Which?",
    expected_outcome="The file is shown.",
    confidence=0.9,
)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FULL),
        f"```json\n{json.dumps(FULL)}\n```",
        f"Here is what I would do:\n{json.dumps(FULL)}",
        json.dumps({**FULL, **FULL["action"], "action": None}),
        json.dumps(FULL | {"strategy": "Parameter_Adjustment"}),
        json.dumps(FULL | {"more": 1}),
    ],
    ids=["plain", "fenced", "with words", "flat", "spelt otherwise", "more than asked for"],
)
def test_what_has_one_meaning_is_read(text: str) -> None:
    """RE-04: models wrap, flatten and respell; what is shown of it is what was read."""
    assert action_in(text) == READ
    assert {key: READ.to_dict()[key] for key in FULL} == FULL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "retry",
        "[]",
        "{}",
        "null",
        '{"strategy": "pray", "confidence": 1}',
        '{"strategy": null}',
        '{"strategy": ["retry"]}',
        json.dumps(FULL)[:-20],
        json.dumps(FULL) + json.dumps(FULL | {"strategy": "give-up"}),
        json.dumps(FULL | {"action": {"tool_name": "view", "parameters": {"n": 2**70}}}),
    ],
)
def test_what_has_no_certain_meaning_is_no_action(text: str) -> None:
    """RE-05: the rule takes over; also for what could not be stored."""
    assert action_in(text) is None


@pytest.mark.parametrize("said", [None, True, "0.9", "high", 90, -1, 1.5, [0.9], {}])
def test_an_odd_confidence_is_none(said: object) -> None:
    """So that a person is asked."""
    action = action_in(json.dumps(FULL | {"confidence": said}))

    assert action is not None
    assert action.confidence == 0


@given(st.text() | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(json.dumps))
def test_nothing_makes_it_raise(text: str) -> None:
    """RE-05: recovery itself never raises."""
    action_in(text)


@given(
    st.fixed_dictionaries(
        {"strategy": st.sampled_from(get_args(Strategy))},
        optional={
            key: st.none() | st.text() | st.integers() | st.dictionaries(st.text(), st.integers())
            for key in ("reasoning", "action", "expected_outcome", "confidence", "parameters")
        },
    )
)
def test_what_is_read_can_be_stored(said: dict[str, Any]) -> None:
    """An action waits for a person in a checkpoint."""
    action = action_in(json.dumps(said))

    assert action is None or unstorable_part(action.to_dict()) is None


def test_endless_texts_are_cut() -> None:
    """They stand in a checkpoint and before a person; what no database takes is replaced."""
    action = action_in(json.dumps(FULL | {"reasoning": "a\0b" + "x" * 100_000}))

    assert action is not None
    assert len(action.reasoning) == LONGEST
    assert action.reasoning.startswith("a\ufffdb")
