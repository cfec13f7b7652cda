"""Recovery chooses one action against a failure, does it or leaves it to a person, or gives up."""

import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore
from tests.parts import Says, a_context, a_failure, a_recovery, a_state, a_task, settings, taken
from tests.scripted_runs import against, shout

from daruma.nodes.recovery import SAMPLING, recovery
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.failure import Failure, ModelFailed, Strategy
from daruma.state.lessons import Experience, Tried
from daruma.state.usage import Failover
from daruma.tools.context import Answer, Context
from daruma.tools.evolution._recoveries import learn_recoveries

FAILURE = a_failure(message="request 7 failed")


def state(recoveries: int = 1, tried: int = 0, **values: Any) -> State:
    task = a_task(limits={"recoveries": recoveries})
    steps = taken("recover", signature=FAILURE.signature) * tried
    return a_state(**{"task": task, "failure": FAILURE, "steps": steps} | values)


def said(strategy: str, confidence: float = 0.9, **action: Any) -> AIMessage:
    """A model's answer that proposes an action."""
    return AIMessage(json.dumps(against(strategy, confidence, **action)["json"]))


async def recovered(
    answer: AIMessage | str | Exception, given: State | None = None, **recovery_settings: Any
) -> Any:
    chain = {"fallback_chain": {"recovery": recovery_settings}}
    context = a_context(answer, tools=[shout], given=settings(**chain))
    return await recovery(given or state(), context)


async def test_the_main_model_is_asked_for_one_action() -> None:
    """RE-04: temperature 0.2, 600 tokens, no tools; goal, progress and failure are in it."""
    ask = Says(said("retry"))
    await recovery(state(), a_context(ask=ask))

    (request,) = ask.requests
    assert (SAMPLING.temperature, SAMPLING.max_tokens) == (0.2, 600)
    assert (ask.sampled, ask.offered) == ([SAMPLING], [[]])
    assert "Do it" in request[1].text
    assert "request 7 failed" in request[1].text


@pytest.mark.parametrize(
    "answer", [ModelFailed("down"), "", "I do not know", '{"strategy": "pray"}']
)
async def test_without_a_usable_answer_the_rule_holds(answer: str | Exception) -> None:
    """RE-05: adjust after a first failure, ask a person after a repeated one."""
    first = await recovered(answer)
    again: Any = await recovered(answer, state(2, 1))

    assert "request 7 failed" in first["messages"][0].text
    assert (first["failure"], first["origin"]) == (None, FAILURE)
    assert [(s.kind, s.signature) for s in first["steps"]] == [("recover", FAILURE.signature)]
    assert (again["action"].strategy, again["action"].assent) == ("escalate", "question")


@pytest.mark.parametrize(
    ("failure", "given"),
    [
        (FAILURE, {"recoveries": 0}),
        (FAILURE, {"recoveries": 1, "tried": 1}),
        (FAILURE, {"steps": taken("think", "think", "think")}),
        (Failure(code="llm_failure", node="main", message="401", final=True), {}),
    ],
    ids=["switched off", "dealt with before", "no budget", "final"],
)
async def test_what_is_hopeless_is_given_up_without_a_model(
    failure: Failure, given: dict[str, Any]
) -> None:
    """RE-07 and BU-01; the failure stays open, the first one its origin (EM-04)."""
    ask, first = Says("never asked"), a_failure(message="first")
    update: Any = await recovery(state(**given, origin=first, failure=failure), a_context(ask=ask))

    assert update == {"origin": first, "action": None}
    assert ask.requests == []


async def test_a_retry_waits_and_says_nothing_to_a_model_that_was_not_heard() -> None:
    """The same request goes out again, after a while that doubles."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    retried = taken("recover", recovery=a_recovery("retry"))
    for steps in ([], retried, retried * 9):
        context = replace(a_context(said("retry"), given=settings()), sleep=sleep)
        update = await recovery(state(steps=steps), context)

    assert waited == [2.0, 4.0, 60.0]
    assert (update["messages"], update["failure"]) == ([], None)


async def test_a_retry_after_an_empty_answer_is_told() -> None:
    """The same request would bring the same answer."""
    failure = Failure(
        code="llm_failure", node="main", message="empty", original_error="empty_answer"
    )
    update = await recovered(said("retry"), state(failure=failure), wait_seconds=0)

    assert "Try again." in update["messages"][0].text


async def test_another_tool_is_named_and_the_failed_one_hidden() -> None:
    """RE-04: the model is told, and the next request does not show what failed."""

    def whisper(text: str) -> str:
        """Say it quietly."""
        return text.lower()

    failure = Failure(code="loop_detected", node="main", message="a loop", tool="shout")
    context = a_context(said("alternative-tool", tool_name="whisper"), tools=[shout, whisper])
    update: Any = await recovery(state(failure=failure), context)

    assert "use whisper" in update["messages"][0].text
    assert update["steps"][0].recovery.hides == "shout"


async def test_a_corrected_call_becomes_a_call_like_any_other() -> None:
    """It is in the history and waits at the gate; a policy may still deny it."""
    corrected = said("parameter-adjustment", tool_name="shout", parameters={"text": "x"})
    update = await recovered(corrected)

    (message,) = update["messages"]
    assert [(c["name"], c["args"]) for c in message.tool_calls] == [("shout", {"text": "x"})]
    assert [(c.name, c.status, c.message_id) for c in update["calls"]] == [
        ("shout", "ready", message.id)
    ]


async def test_a_corrected_call_of_no_tool_is_answered() -> None:
    """TL-03: every call in the history has its result."""
    wrong = said("parameter-adjustment", tool_name="nope", parameters={"text": "x"})
    given = settings(tools={"name_repair_attempts": 0})
    update: Any = await recovery(state(), a_context(wrong, tools=[shout], given=given))

    assert [type(m).__name__ for m in update["messages"]] == ["AIMessage", "ToolMessage"]


@pytest.mark.parametrize(
    ("confidence", "given", "assent"),
    [
        (0.8, {}, None),
        (0.79, {}, "approval"),
        (0.5, {}, "approval"),
        (0.49, {}, "question"),
        (0.3, {"execute_above": 0.2, "ask_above": 0.1}, None),
        *((each, {"observe_only": True}, "observed") for each in (0.9, 0.6, 0.1)),
    ],
)
async def test_confidence_decides_who_is_asked(
    confidence: float, given: Any, assent: str | None
) -> None:
    """RE-06: by thresholds that are settings; nothing is on record of it before it was decided.

    One that only observes does nothing, and it is on record what would have been done.
    """
    update = await recovered(said("retry", confidence), wait_seconds=0, **given)

    action, taken_ = update["action"], update["steps"][0].recovery
    asked = assent if assent != "observed" else None
    assert (action.assent if action else None) == asked
    assert ("failure" in update) == (assent is None)
    assert (taken_ is None) == (asked is not None)
    assert assent is not None or update["failure"] is None
    assert assent != "observed" or taken_.carried == "observed"


async def learned(context: Context, *failures: Failure, tasks: int = 3) -> Context:
    """A context that feeds back what so many tasks have done against failures."""
    store = InMemoryStore()
    for number in range(tasks):
        tried = tuple(
            Tried(
                actor="plan" if each.node == "plan" else "main",
                signature=each.signature,
                strategy="parameter-adjustment",
                by="model",
                worked=True,
            )
            for each in failures
        )
        experience = Experience(
            task_id=f"t/{number}",
            owner="default",
            mode="react",
            status="completed",
            goal="g",
            at=99.0,
            tried=tried,
        )
        await learn_recoveries(experience, store)
    given = settings(evolution={"observe_only": False})
    return replace(context, store=store, settings=given)


async def test_what_was_learned_goes_first() -> None:
    """RE-08: without a model call, when it is sure enough."""
    ask = Says(said("give-up"))
    knowing = await learned(a_context(ask=ask), FAILURE)
    unsure = await learned(a_context(ask=ask), FAILURE, tasks=2)
    done: Any = await recovery(state(), knowing)
    asked: Any = await recovery(state(), unsure)

    assert done["steps"][0].recovery.by == "learned"
    assert asked["steps"][0].recovery.strategy == "give-up"
    assert len(ask.requests) == 1


async def test_recoveries_are_told_from_start_to_end() -> None:
    """RE-09; what waits for a person is closed when that person has answered."""
    events: list[Event] = []
    await recovery(state(), a_context(said("retry"), events=events))
    told = [e.type for e in events]
    events.clear()
    await recovery(state(), a_context(said("retry", 0.6), events=events))

    asked = ["model_call_started", "recovery_action"]
    assert told == ["recovery_started", *asked, "recovery_completed"]
    assert [e.type for e in events] == ["recovery_started", *asked]


@pytest.mark.parametrize("strategy", ["retry", "parameter-adjustment"])
async def test_a_tool_is_tried_again_twice_and_then_another(strategy: Strategy) -> None:
    """RE-07."""

    def whisper(text: str) -> str:
        """Say it quietly."""
        return text.lower()

    failure = Failure(code="loop_detected", node="main", message="a loop", tool="shout")
    before = taken("recover", recovery=a_recovery("retry", tool="shout")) * 2
    context = a_context(said(strategy), tools=[shout, whisper])
    update: Any = await recovery(state(failure=failure, steps=before), context)

    assert update["steps"][0].recovery.strategy == "alternative-tool"


async def test_a_plan_that_failed_is_only_talked_about() -> None:
    """Planning calls no tools: a corrected call would be lost."""
    failure = a_failure(node="plan")
    corrected = said("parameter-adjustment", tool_name="shout", parameters={"text": "x"})
    update = await recovered(corrected, state(failure=failure))

    assert isinstance(update["messages"][0], HumanMessage)
    assert update["calls"] == ()


async def test_its_model_calls_are_numbered_by_the_record() -> None:
    """So that a resumed run asks a scripted model for the right turn."""
    events: list[Event] = []
    steps = [
        *taken("recover", task="t/0"),
        *taken("recover", recovery=a_recovery(by="learned")),
    ]
    await recovery(state(steps=steps), a_context(said("retry"), events=events))

    assert [e.to_dict()["model"] for e in events if e.type == "model_call_started"] == ["stub 1"]


async def test_without_a_failure_it_is_a_bug() -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        await recovery(State(task=a_task()), a_context())


async def test_a_bug_closes_what_was_opened() -> None:
    """PL-04: on every path."""
    events: list[Event] = []
    with pytest.raises(ZeroDivisionError):
        await recovery(state(), a_context(ZeroDivisionError("a bug"), events=events))

    assert events[-1].to_dict()["carried"] == "failed"


async def test_what_was_learned_keeps_to_the_same_limits() -> None:
    """RE-07: it was learned in another run, of other tools and other tries."""
    failure = replace(FAILURE, tool="shout")
    worn = taken("recover", recovery=a_recovery("retry", tool="shout")) * 2
    planning = a_failure(node="plan")
    context = await learned(a_context(tools=[shout]), failure, planning)
    again: Any = await recovery(state(failure=failure, steps=worn), context)
    planned: Any = await recovery(state(failure=planning), context)

    taken_ = again["steps"][0].recovery
    assert (taken_.strategy, taken_.by) == ("alternative-tool", "learned")
    assert planned["steps"][0].recovery.by == "learned"
    assert planned["calls"] == ()


async def test_what_it_took_and_cost_is_on_record() -> None:
    """TL-17 and MO-07: whether the model answered in the end or not."""
    tried = Failover(requested="a", used="b")

    class Fallback(Says):
        async def __call__(self, *args: Any, **options: Any) -> Answer:
            return replace(await super().__call__(*args, **options), failover=tried)

    answered: Any = await recovery(state(), a_context(ask=Fallback(said("give-up"))))
    failed: Any = await recovery(state(), a_context(ModelFailed("down", failover=tried)))

    steps = [*answered["steps"], *failed["steps"]]
    assert [step.audit.failover for step in steps] == [tried, tried]
    assert [step.usage.role if step.usage else None for step in steps] == ["recovery", None]


async def test_what_waits_for_a_person_keeps_the_first_failure() -> None:
    """EM-04: a task that nobody helps is told under its code."""
    first = a_failure(message="first")
    update = await recovered(said("retry", 0.6), state(origin=first))

    assert update["origin"] == first


async def test_giving_up_is_told_with_why() -> None:
    """RE-09: also where no model was asked."""
    events: list[Event] = []
    await recovery(state(0), a_context(events=events))

    started, chosen, completed = [e.to_dict() for e in events]
    assert started["type"] == "recovery_started"
    assert (chosen["strategy"], chosen["reasoning"]) == ("give-up", "recovery is switched off")
    assert completed["type"] == "recovery_completed"
