"""Learning from ended tasks, beside the runs: it delays no answer and fails no task (EV-01)."""

import asyncio
import json
import logging
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphDrained, GraphRecursionError, NodeError
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from tests.evolution_stores import IllStore
from tests.learned_tasks import CONFIG, PLANNED, REACT, Learned
from tests.parts import a_context, a_failure, a_state, a_task, settings
from tests.raising_model import RaisingModel
from tests.scripted_runs import calls, phases, say, shout

from daruma.graph.build import build_graph, error_handler
from daruma.graph.learning import (
    Counts,
    Ended,
    Evolution,
    HandingOver,
    NotSampled,
    NotTaken,
    Tally,
    ask_with,
)
from daruma.graph.models import (
    Asker,
    Models,
    ScriptedChatModel,
)
from daruma.graph.scope import RunScope
from daruma.graph.storage import open_postgres
from daruma.state.errors import DamagedState, HoldLost, StorageUnavailable, WorkspaceBusy
from daruma.state.failure import TaskFailed
from daruma.state.settings import Settings
from daruma.state.task import Status
from daruma.tools.evolution import answer_nothing

# --- The auxiliary model is asked only where settings allow it, and nothing depends on its
# answer.


def asker(auxiliary: str | None) -> Asker:
    return Asker(Models(ScriptedChatModel(script=[]), auxiliary))


def allowed(value: bool) -> Settings:
    return Settings.model_validate({"evolution": {"auxiliary": value}})


def script(folder: Path, turn: dict[str, str]) -> str:
    """The name of a model that answers so."""
    file = folder / "script.json"
    file.write_text(json.dumps({"evolution": [turn]}))
    return f"scripted:{file}"


@pytest.mark.parametrize(("auxiliary", "value"), [(None, True), ("openai:small", False)])
def test_nobody_is_asked_without_both(auxiliary: str | None, value: bool) -> None:
    """A model of its own, and settings that say so: the main model is never asked."""
    assert ask_with(asker(auxiliary), allowed(value)) is answer_nothing


async def test_an_answer_comes_with_what_it_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no task's: its tokens are logged."""
    ask = ask_with(asker(script(tmp_path, say("Use tabs."))), allowed(True))

    with caplog.at_level(logging.INFO, "daruma.evolution"):
        answer = await ask("Word it.", "It fell.")

    assert answer == "Use tabs."
    assert "tokens in" in caplog.text


async def test_a_model_that_fails_says_nothing(tmp_path: Path) -> None:
    """What is learned by rule stands without it."""
    ask = ask_with(asker(script(tmp_path, {"raise": "timeout"})), allowed(True))

    assert await ask("Word it.", "It fell.") == ""


# --- Outcomes are counted, and a reason is one line that gives nothing away.


class Mute(Exception):
    """Can not be told."""

    def __str__(self) -> str:
        raise ValueError


def test_each_end_is_counted_as_what_it_was() -> None:
    """EV-02: learned from, skipped, dropped or failed."""
    tally = Tally()

    for error in (None, None, NotSampled(), NotTaken("many wait"), ValueError()):
        tally.end("t/1", error)

    assert tally.counts == Counts(learned=2, skipped=1, dropped=1, failed=1)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("a\nb sk-abcdefghijkl"), "ValueError: a b [key]"),
        (ValueError("x" * 999), f"ValueError: {'x' * 300}"),
        (Mute(), "Mute: it can not be told"),
    ],
)
def test_a_reason_is_one_short_line_without_keys(
    error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a store raises."""
    with caplog.at_level(logging.WARNING, "daruma.evolution"):
        Tally().end("t/1", error)

    assert caplog.messages == [f"nothing was learned from task 't/1': {told}"]


# --- Each task has one record, and it says how the task ended in the end.

GOALS = ("Fix the rounding of invoices", "Write a poem on sheep", "Deploy the kitchen website")
STUCK = {"main": [calls("shout")] * 20, "recovery": [say("no")] * 20}


def ended(store: InMemoryStore, goal: str, config: Any, script: Any) -> None:
    """Have one task end without a checkpointer, and be learned from."""
    given = settings(sandbox={"require": "none"}, evolution={"success_sample_rate": 1.0})
    model = ScriptedChatModel(script=script)
    graph: Any = build_graph(model, [shout], given, store=store)
    graph.invoke({"messages": [("user", goal)], "mode": "react"}, config)
    assert graph.evolution.drain()


@pytest.mark.long
@pytest.mark.parametrize("config", [None, {"configurable": {"thread_id": "t"}}])
def test_tasks_without_a_checkpointer_are_not_taken_for_one(config: Any) -> None:
    """EV-04: all of them have the same id; none takes another's place on record."""
    store = InMemoryStore()

    for goal in GOALS:
        ended(store, goal, config, STUCK)
    ended(store, "Say when it is done", config, [say()])

    kept = [item.value for item in store.search(("daruma", "evolution", "default", "experiences"))]
    found = store.search(("daruma", "evolution", "default", "pitfalls"))
    assert {each["goal"]: each["status"] for each in kept} == {
        **dict.fromkeys(GOALS, "failed"),
        "Say when it is done": "completed",
    }
    assert len({each["task_id"] for each in kept}) == 4
    assert sorted(item.value["pitfall"]["goals"][0] for item in found) == sorted(GOALS)


def test_a_failed_task_that_was_taken_up_and_completed_is_not_left_as_failed() -> None:
    """EV-01: a success that is not sampled is let go, but not where it corrects a record."""
    store, evolution = InMemoryStore(), Evolution()
    none = settings(evolution={"success_sample_rate": 0.0})

    ends: list[tuple[int, Status]] = [(1, "failed"), (1, "completed"), (2, "completed")]
    for number, status in ends:
        state = a_state(task=a_task(id=f"t{number}/1"))
        evolution.hand_over(Ended(state, status, none, store))
        assert evolution.drain()

    kept = [item.value for item in store.search(("daruma", "evolution", "default", "experiences"))]
    assert [(each["task_id"], each["status"]) for each in kept] == [("t1/1", "completed")]
    assert evolution.counts.skipped == 1


# --- Every task is handed over when its run is over, whichever way that came about (EV-01).


def scripted(*turns: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(turns))


def by_invoke(learned: Learned, given: Any) -> None:
    learned.graph.invoke(given, CONFIG)


def by_stream(learned: Learned, given: Any) -> None:
    assert list(learned.graph.stream(given, CONFIG, stream_mode=["updates", "custom"]))


def by_ainvoke(learned: Learned, given: Any) -> None:
    asyncio.run(learned.graph.ainvoke(given, CONFIG))


def by_astream(learned: Learned, given: Any) -> None:
    async def read() -> list[Any]:
        return [part async for part in learned.graph.astream(given, CONFIG)]

    assert asyncio.run(read())


WAYS = [by_invoke, by_stream, by_ainvoke, by_astream]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("turns", "status"),
    [([say()], "completed"), ([calls("shout"), calls("shout")], "max_steps_exceeded")],
)
def test_all_four_ways_hand_over_the_same(way: Any, turns: list[Any], status: Any) -> None:
    """MO-09: the same experience, once."""
    learned = Learned(scripted(*turns), [shout], budgets={"max_steps": len(turns)})

    way(learned, REACT)

    invoked = Learned(scripted(*turns), [shout], budgets={"max_steps": len(turns)})
    by_invoke(invoked, REACT)
    assert learned.experiences == invoked.experiences
    assert learned.statuses == [status]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "chain", [{"enabled": False}, {"emergency": {"enabled": False}}, {"enabled": True}]
)
def test_a_failure_is_handed_over_whatever_it_leaves_the_machine_as(way: Any, chain: Any) -> None:
    """EM-05: as a result, as an exception after it, or as an exception in its place."""
    given = {**chain, "recovery": {"enabled": False}}
    learned = Learned(RaisingModel(*[ValueError("no")] * 9), fallback_chain=given)

    with suppress(ValueError):
        way(learned, REACT)

    assert learned.statuses == ["failed"]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_cancelled_caller_breaks_its_task_off(streams: bool) -> None:
    """EV-01: ``task.cancel()`` in the midst of a tool, both ways to await."""
    reached = asyncio.Event()

    async def hang(text: str) -> str:
        """Take for ever."""
        reached.set()
        await asyncio.Event().wait()
        return text

    learned = Learned(scripted(calls("hang")), [hang])

    async def read() -> None:
        if not streams:
            await learned.graph.ainvoke(REACT, CONFIG)
        async for _ in learned.graph.astream(REACT, CONFIG):
            pass

    task = asyncio.create_task(read())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await learned.graph.evolution.adrain()
    assert learned.statuses == ["cancelled"]


@pytest.mark.parametrize(
    ("until", "status"),
    [("main", ["cancelled"]), ("finish", ["completed"]), ("__interrupt__", [])],
)
@pytest.mark.parametrize("way", ["closed", "interrupted", "awaited"])
async def test_a_stream_that_is_left_early(until: str, status: list[str], way: str) -> None:
    """EV-01, MO-09: nobody reads on, so nothing is done any more; what had ended, had ended.

    A task that waits for its answer is no more over than for who reads on.
    """
    plan = {"plan": [phases("one")] * 2, "main": [say()]}
    script = plan if until == "__interrupt__" else {"main": [calls("shout"), say()]}
    learned = Learned(ScriptedChatModel(script=script), [shout])
    given: Any = PLANNED if until == "__interrupt__" else REACT
    if way == "awaited":
        parts: Any = learned.graph.astream(given, CONFIG, stream_mode="updates")
        async for part in parts:
            if until in part:
                break
        await parts.aclose()
    else:
        parts = learned.graph.stream(given, CONFIG, stream_mode="updates")
        next(part for part in parts if until in part)
        if way == "closed":
            parts.close()
        else:
            with pytest.raises(KeyboardInterrupt):
                parts.throw(KeyboardInterrupt())

    assert await learned.graph.evolution.adrain()
    assert learned.statuses == status


def test_what_waits_for_a_person_is_handed_over_once_it_has_ended() -> None:
    """Not before: nothing is known of it yet."""
    script = {"plan": [phases("one")], "main": [say()]}
    learned = Learned(ScriptedChatModel(script=script))

    (question,) = learned.graph.invoke(PLANNED, CONFIG)["__interrupt__"]
    before = learned.statuses
    answer: Any = Command(resume={question.id: {"decision": "confirm"}})
    learned.graph.invoke(answer, CONFIG)

    assert (before, learned.statuses) == ([], ["completed"])


def test_what_was_stopped_on_purpose_is_not_handed_over() -> None:
    """``interrupt_before`` looks at a run; going on ends it."""
    learned = Learned()

    learned.graph.invoke(REACT, CONFIG, interrupt_before=["finish"])
    before = learned.statuses
    learned.graph.invoke(None, CONFIG)

    assert (before, learned.statuses) == ([], ["completed"])


def test_chat_is_never_handed_over() -> None:
    """MO-03."""
    learned = Learned()

    chat: Any = {**REACT, "mode": "direct_chat"}
    result = learned.graph.invoke(chat, CONFIG)["result"]

    assert result.completed
    assert learned.graph.evolution.counts.accepted == 0


def test_the_settings_of_the_run_count() -> None:
    """One run may switch off what the graph has on."""
    learned = Learned(scripted(say(), say()))
    off = learned.graph.settings.model_copy(
        update={"evolution": learned.graph.settings.evolution.model_copy(update={"enabled": False})}
    )

    learned.graph.invoke(REACT, CONFIG, context=off)
    without = learned.graph.evolution.counts.accepted
    learned.graph.invoke(REACT, CONFIG)

    assert (without, learned.graph.evolution.counts.accepted) == (0, 1)


def test_a_task_that_never_began_takes_nothing_from_the_one_before() -> None:
    """What is broken off at intake has no task of its own yet; the earlier one is as it was."""
    learned = Learned()
    learned.graph.invoke(REACT, CONFIG)

    parts: Any = learned.graph.stream(REACT, CONFIG, stream_mode="tasks")
    next(parts)
    parts.close()

    assert learned.statuses == ["completed"]


def test_steps_that_ran_out_are_a_failure() -> None:
    """LangGraph's own limit raises; the thread can be gone on with, the run has failed."""
    learned = Learned()

    short: Any = {**CONFIG, "recursion_limit": 2}
    with pytest.raises(GraphRecursionError):
        learned.graph.invoke(REACT, short)

    assert learned.statuses == ["failed"]


class Handed(HandingOver):
    """Keeps what it hands over; its newest node is main."""

    def __init__(self) -> None:
        self.kept: list[Ended] = []
        super().__init__(self.kept.append)
        self.entered("main", a_state(), a_context())

    def end(self, error: BaseException | None) -> None:
        with suppress(BaseException), self.after():
            if error:
                raise error


@pytest.mark.parametrize(
    "error",
    [
        StorageUnavailable("gone"),
        HoldLost("t"),
        WorkspaceBusy("taken"),
        DamagedState("damaged"),
        GraphDrained("the process is to end"),
        None,
    ],
)
def test_what_can_be_gone_on_with_is_not_handed_over(error: BaseException | None) -> None:
    """DU-04: a database that is lost says nothing of the task, and the thread is still there."""
    handed = Handed()

    handed.end(error)

    assert handed.kept == []


def test_an_exception_is_the_failure_of_the_state_that_it_left() -> None:
    """The state that is at hand is the one from before; without it nobody knew what happened."""
    handed = Handed()

    handed.end(ValueError("it broke"))

    (ended,) = handed.kept
    assert ended.status == "failed"
    assert ended.state.failure is not None
    assert (ended.state.failure.node, ended.state.failure.code) == ("main", "internal_error")
    assert "it broke" in ended.state.failure.message


def test_a_failure_that_has_left_as_an_exception_is_the_one_that_was_met() -> None:
    """EM-05: not a new one, of a bug in the machine; what it began with stays."""
    left, first = a_failure(message="no budget"), a_failure(message="the first")
    handed, known, later = Handed(), Handed(), Handed()
    known.entered("main", a_state(failure=first, origin=None), a_context())
    later.entered("main", a_state(origin=first), a_context())

    for each in (handed, known, later):
        each.end(TaskFailed(left))

    states = [ended.state for each in (handed, known, later) for ended in each.kept]
    assert [(state.failure, state.origin) for state in states] == [
        (left, left),
        (first, None),
        (left, first),
    ]


async def test_what_is_read_from_is_closed_with_its_reader() -> None:
    """Before the task is handed over: nothing of its run is under way by then."""
    reached, happened = asyncio.Event(), list[str]()

    async def hang(text: str) -> str:
        """Take for ever."""
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            happened.append("closed")
        return text

    class Noting(Evolution):
        def hand_over(self, ended: Ended) -> None:
            happened.append(ended.status)

    machine = build_graph(scripted(calls("hang")), [hang])
    machine.evolution = Noting()
    reading: Any = machine.astream(REACT, CONFIG, stream_mode="custom")
    async for part in reading:
        if part["type"] == "tool_started":
            break
    await reached.wait()
    await reading.aclose()

    assert happened == ["closed", "cancelled"]


def test_a_run_is_handed_over_once_and_only_with_an_end_of_its_own() -> None:
    """However often its end is looked at; a rollback that is held goes on from finish."""
    completed: Any = Learned().graph.invoke(REACT, CONFIG)["result"]
    twice, another, held, not_begun = (Handed() for _ in range(4))

    twice.end(ValueError())
    twice.end(ValueError())
    another.ended(a_state(), replace(completed, task_id="another/1"))
    another.end(None)
    held.ended(a_state(), completed)
    held.entered("hold", a_state(), a_context())
    held.end(None)
    not_begun.entered("intake", a_state(), a_context())
    not_begun.end(ValueError())

    assert [len(each.kept) for each in (twice, another, held, not_begun)] == [1, 0, 0, 0]


def test_one_of_several_that_were_sent_out_is_not_the_task() -> None:
    """What a tool is called with is no state."""
    handed = Handed()

    handed.entered("tool", object(), a_context())
    handed.end(KeyboardInterrupt())

    (ended,) = handed.kept
    assert (ended.state.task, ended.status) == (a_task(), "cancelled")


async def test_a_result_that_could_not_be_built_is_an_end_too() -> None:
    """The last net's bare result is the task's, as any other."""
    handed = Handed()
    error = NodeError(node="finish", error=ValueError("no result"))
    runtime: Runtime[Settings] = Runtime()
    config = RunScope(handing=handed).attach(None)

    await error_handler(Settings())(a_state(), error, runtime, config)
    handed.end(None)

    (ended,) = handed.kept
    assert ended.status == "failed"


# --- A process that is killed while it learns loses what it had not learned, and nothing else.

CONFIG_EVOLUTION_KILLED: Any = {"configurable": {"thread_id": "t"}}
ASKED: Any = {"messages": [("user", "Do it")], "mode": "react"}

DYING = """
import os, signal, sys
from tests.evolution_stores import IllStore
from tests.parts import settings
from tests.scripted_runs import say
from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import open_postgres
with open_postgres(sys.argv[1]) as pg:
    store = IllStore("hangs")
    given = settings(evolution={"success_sample_rate": 1.0})
    graph = build_graph(ScriptedChatModel(script=[say("First.")]), (), given, pg, store=store)
    graph.invoke(
        {"messages": [("user", "Do it")], "mode": "react"}, {"configurable": {"thread_id": "t"}}
    )
    store.asked.wait()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def graph_on(pg: Any, store: Any = None) -> Any:
    model = ScriptedChatModel(script=[say("First."), say("Second.")])
    given = settings(evolution={"success_sample_rate": 1.0})
    return build_graph(model, (), given, pg, store=store)


@pytest.mark.long
def test_a_thread_goes_on_after_its_process_was_killed_while_it_learned(postgres_url: str) -> None:
    """DU-01: the answer is there, and the next task is run and learned from."""
    ran = subprocess.run([sys.executable, "-c", DYING, postgres_url], check=False, timeout=60)

    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        before = graph.get_state(CONFIG_EVOLUTION_KILLED).values["result"]
        after = graph.invoke(ASKED, CONFIG_EVOLUTION_KILLED)["result"]
        assert graph.evolution.drain()
        place = ("daruma", "evolution", "default", "experiences")
        kept = [item.value["task_id"] for item in pg.store.search(place)]

    assert (ran.returncode, before.status) == (-9, "completed")
    assert (after.status, kept) == ("completed", [after.task_id])


def test_closing_storage_waits_for_what_is_learned_into_it(postgres_url: str) -> None:
    """EV-02: a script that ends with its answer has learned from it too."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        graph.invoke(ASKED, CONFIG_EVOLUTION_KILLED)

    assert graph.evolution.counts.learned == 1


def test_closing_storage_waits_for_nothing_else(postgres_url: str) -> None:
    """What is learned into another store has its own end."""
    store = IllStore("hangs")

    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg, store)
        graph.invoke(ASKED, CONFIG_EVOLUTION_KILLED)
        assert store.asked.wait(20)

    assert graph.evolution.counts.failed == 0
    assert not graph.evolution.drain(0.0)
