"""Learning goes on beside runs: nothing that it does, or fails to do, is felt in one."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, Result
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr
from tests.evolution_stores import ILL, Ill, IllStore
from tests.learned_tasks import CONFIG, REACT
from tests.parts import a_state, a_task, memory, settings
from tests.scripted_runs import RecordingModel, Run, against, calls, illegal, phases, say, shout
from tests.tools.evolution.ended_tasks import on_record
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.learning import Counts, Ended, Evolution
from daruma.graph.learning_jobs import Jobs
from daruma.graph.models import ROLE_KEY, ScriptedChatModel
from daruma.graph.run import Machine
from daruma.graph.storage import aopen_postgres, open_postgres
from daruma.state.lessons import Experience, Setback
from daruma.state.settings import Settings
from daruma.tools.evolution import Learning, Pitfalls, Variant, Variants
from daruma.tools.evolution._learning import SECONDS

ALL = settings(evolution={"success_sample_rate": 1.0})
ROOT = ("daruma", "evolution")


def ended(number: int = 1, given: Settings = ALL, **changes: Any) -> Ended:
    """One of many tasks that ended well."""
    task = a_task(id=f"t{number}/1")
    parts: dict[str, Any] = {"state": a_state(task=task), "status": "completed", "settings": given}
    return Ended(**{**parts, "store": InMemoryStore(), **changes})


class Gate:
    """Learning that waits until it is let go on; it notes who came in, in their order."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.inside: list[str] = []
        self.came = threading.Semaphore(0)

    async def learn(self, experience: Experience, _: Learning) -> None:
        self.inside.append(experience.task_id)
        self.came.release()
        await asyncio.to_thread(self.open.wait)

    def wait_for(self, number: int) -> None:
        for _ in range(number):
            assert self.came.acquire(timeout=20)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


def test_twice_as_many_as_at_once_may_be_pending_and_more_are_dropped(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """EV-02: two are learned from, two wait; six that come then are counted, and said in a line."""
    evolution = Evolution(learn=gate.learn)

    with caplog.at_level(logging.INFO, "daruma.evolution"):
        for number in range(10):
            evolution.hand_over(ended(number))
        gate.wait_for(2)
        inside = sorted(gate.inside)
        gate.open.set()

        assert evolution.drain()

    assert inside == ["t0/1", "t1/1"]
    assert sorted(gate.inside) == ["t0/1", "t1/1", "t2/1", "t3/1"]
    assert evolution.counts == Counts(accepted=4, learned=4, dropped=6)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_each_burst_is_said_once(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    """EV-02: what is taken on in between ends one burst."""
    one = settings(evolution={"success_sample_rate": 1.0, "max_concurrent": 1})
    evolution = Evolution(learn=gate.learn)

    with caplog.at_level(logging.WARNING, "daruma.evolution"):
        for _ in range(2):
            gate.open.clear()
            for number in range(5):
                evolution.hand_over(ended(number, one))
            gate.open.set()
            assert evolution.drain()

    assert (evolution.counts.dropped, len(caplog.records)) == (6, 2)


def test_what_is_not_sampled_is_counted_and_not_kept() -> None:
    """EV-01: most that simply went well are let go."""
    store = InMemoryStore()
    evolution, none = Evolution(), settings(evolution={"success_sample_rate": 0.0})

    evolution.hand_over(ended(1, none, store=store))
    evolution.hand_over(ended(2, none, store=store, status="failed"))

    assert evolution.drain()
    assert evolution.counts == Counts(accepted=2, learned=1, skipped=1)
    kept = store.search((*ROOT, "default", "experiences"))
    assert [item.value["task_id"] for item in kept] == ["t2/1"]


@pytest.mark.parametrize(
    "nothing",
    [
        ended(store=None),
        ended(given=settings(evolution={"enabled": False})),
        ended(state=a_state(task=a_task("direct_chat"))),
        ended(state=a_state(task=None)),
    ],
)
def test_where_there_is_nothing_to_learn_nothing_happens(nothing: Ended) -> None:
    """MO-03: nothing is taken on, nor counted."""
    evolution = Evolution()

    evolution.hand_over(nothing)

    assert evolution.counts == Counts()


def test_what_is_not_done_in_time_is_cancelled_and_counted() -> None:
    """EV-02: shutdown waits, and then no longer."""
    store = IllStore("hangs")
    evolution = Evolution()
    evolution.hand_over(ended(store=store))
    assert store.asked.wait(20)

    assert not evolution.drain(0.0)

    assert evolution.counts == Counts(accepted=1, failed=1)
    assert evolution.drain()


async def test_draining_leaves_the_loop_to_others() -> None:
    """What is waited for may need the loop of whoever waits, as a store's connections do."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    async def learn(_: Experience, __: Learning) -> None:
        asyncio.run_coroutine_threadsafe(_set(done), loop)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done.wait(), loop))

    evolution = Evolution(learn=learn)
    evolution.hand_over(ended())

    assert await evolution.adrain()
    assert evolution.counts.learned == 1


async def _set(event: asyncio.Event) -> None:
    event.set()


def test_one_that_takes_too_long_makes_room(caplog: pytest.LogCaptureFixture) -> None:
    """A minute each, here none: also what ignores its cancellation."""

    async def learn(experience: Experience, _: Learning) -> None:
        while experience.task_id == "t1/1":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                stubborn.append(experience.task_id)
                if len(stubborn) > 1:
                    raise

    stubborn: list[str] = []
    evolution = Evolution(learn=learn, jobs=Jobs(seconds=0.05))
    evolution.hand_over(ended(1))

    with caplog.at_level(logging.WARNING, "daruma.evolution"):
        assert evolution.drain()

    evolution.hand_over(ended(2))
    assert evolution.drain()
    assert evolution.counts == Counts(accepted=2, learned=1, failed=1)
    assert "TimeoutError: it was not done within 0.05 s" in caplog.text


def test_a_failure_is_one_line_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody reads a traceback of what does not concern the task."""
    evolution = Evolution()

    with caplog.at_level(logging.WARNING, "daruma.evolution"):
        evolution.hand_over(ended(store=IllStore("raises")))
        assert evolution.drain()

    (record,) = caplog.records
    assert record.getMessage() == (
        "nothing was learned from task 't1/1': ConnectionError: the store is gone, with [key]"
    )
    assert record.exc_info is None


def test_handing_over_never_raises() -> None:
    """A store that is none is no reason for a task to fail."""

    class Wicked(InMemoryStore):
        @property
        def database(self) -> Any:
            raise SystemError("no")

    evolution = Evolution()

    evolution.hand_over(ended(store=Wicked()))

    assert evolution.counts.failed == 1


def graph_with(store: IllStore | None, **evolution: Any) -> Machine:
    given = settings(evolution={"success_sample_rate": 1.0, **evolution})
    model = ScriptedChatModel(script=[calls("shout"), say()])
    return build_graph(model, [shout], given, checkpointer=memory(), store=store)


def by_invoke(graph: Machine) -> list[Any]:
    graph.invoke(REACT, CONFIG)
    return []


def by_stream(graph: Machine) -> list[Any]:
    return list(graph.stream(REACT, CONFIG, stream_mode="custom"))


def by_ainvoke(graph: Machine) -> list[Any]:
    asyncio.run(graph.ainvoke(REACT, CONFIG))
    return []


def by_astream(graph: Machine) -> list[Any]:
    async def read() -> list[Any]:
        return [part async for part in graph.astream(REACT, CONFIG, stream_mode="custom")]

    return asyncio.run(read())


def seen(graph: Machine, way: Any) -> tuple[Any, ...]:
    """All that a run shows, but for its times, ids and tools: events, state and result."""
    events = [{**event, "at": 0, "seconds": 0} for event in way(graph)]
    values = graph.get_state(CONFIG).values
    result = values["result"].to_dict()
    said = [(message.type, message.text) for message in values["messages"]]
    result |= {"timings": {}, "context_usage": None}  # a store brings tools of its own
    return ([each["type"] for each in events], said, result, sorted(values))


WAYS = (by_invoke, by_stream, by_ainvoke, by_astream)
PAIRS = list(zip(WAYS * 2, (*ILL, *ILL[1:], ILL[0]), strict=True))


@pytest.mark.parametrize(("way", "ill"), PAIRS)
def test_a_store_that_fails_is_not_felt_in_a_run(way: Any, ill: Ill) -> None:
    """EV-01: the answer is there while evolution still hangs, and is what it is without."""
    store = IllStore(ill)
    graph = graph_with(store)

    shown = seen(graph, way)

    assert shown == seen(graph_with(None, enabled=False), way)
    assert store.asked.wait(20)
    store.release.set()
    assert graph.evolution.drain(0.0 if ill == "hangs" else 20.0) is (ill != "hangs")
    assert graph.evolution.counts.failed == (ill != "blocks")


def test_the_answer_is_there_before_anything_is_learned(gate: Gate) -> None:
    """EV-01: learning waits for what is only done once the answer was returned."""
    graph = graph_with(IllStore())
    graph.evolution = graph.evolution.by(gate.learn)

    result = graph.invoke(REACT, CONFIG)["result"]
    gate.wait_for(1)
    pending = graph.evolution.counts
    gate.open.set()

    assert result.completed
    assert pending == Counts(accepted=1)
    assert graph.evolution.drain()
    assert graph.evolution.counts == Counts(accepted=1, learned=1)


# --- RE-08 by whole runs: what has worked three times is done without asking, until it works no
# more.
#
# A model says nothing until it is told what helps, and recovery has to find that out by asking.

HELPS = "It may help."
ON = {"observe_only": False, "success_sample_rate": 1.0}


class Mute(ScriptedChatModel):
    """Says nothing unless it is told what helps; counts how often recovery asks."""

    cured: bool = True
    _asked: int = PrivateAttr(default=0)

    @property
    def asked(self) -> int:
        return self._asked

    @override
    def answer(
        self,
        messages: Sequence[BaseMessage],
        *,
        metadata: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]],
    ) -> AIMessage:
        if metadata[ROLE_KEY] == "recovery":
            self._asked += 1
            return AIMessage(json.dumps(against("parameter-adjustment")["json"]))
        told = any(HELPS in str(each.text) for each in messages)
        return AIMessage("Done." if told and self.cured else "")


class Tasks:
    """Tasks one after the other, each on a thread of its own, each learned from before the next."""

    def __init__(self, evolution: dict[str, Any], **storage: Any) -> None:
        self.model = Mute(script={})
        given = settings(evolution=evolution)
        self.graph: Any = build_graph(self.model, (), given, **storage)
        self.count = 0

    def carry_out(self) -> str:
        """By invoke: return who chose the recovery, and how the task ended."""
        out = self.graph.invoke(*self._next())
        return self._told(out["result"])

    def _next(self) -> tuple[Any, Any]:
        self.count += 1
        request = {"messages": [("user", "Say something")], "mode": "react"}
        return request, {"configurable": {"thread_id": str(self.count)}}

    def _told(self, result: Any) -> str:
        assert self.graph.evolution.drain()
        return f"{result.recoveries[0].by} {result.status}"


WAY = [
    *["model completed"] * 3,
    "learned completed",
    "learned failed",
    "model failed",
]
"""Asked three times, then not; it fails, and the next time the model is asked again."""


def test_what_worked_three_times_is_done_without_asking_until_it_fails() -> None:
    """By invoke."""
    tasks = Tasks(ON, checkpointer=memory(), store=InMemoryStore())
    told = [tasks.carry_out() for _ in range(4)]
    asked = tasks.model.asked
    tasks.model.cured = False
    told += [tasks.carry_out() for _ in range(2)]

    assert told == WAY
    assert (asked, tasks.model.asked) == (3, 4)


def test_postgres_remembers_it(postgres_url: str) -> None:
    """Another process knows what the first has learned."""
    with open_postgres(postgres_url) as pg:
        first = Tasks(ON, persistence=pg)
        told = [first.carry_out() for _ in range(3)]
    with open_postgres(postgres_url) as pg:
        later = Tasks(ON, persistence=pg)
        later.count = 3
        told.append(later.carry_out())

    assert told == WAY[:4]
    assert later.model.asked == 0


def test_another_projects_tasks_learn_nothing_from_it() -> None:
    """EV-04."""
    store = InMemoryStore()
    ours = Tasks(ON | {"namespace": "ours"}, checkpointer=memory(), store=store)
    theirs = Tasks(ON | {"namespace": "ours too"}, checkpointer=memory(), store=store)
    told = [ours.carry_out() for _ in range(4)]

    assert told == WAY[:4]
    assert theirs.carry_out() == "model completed"


# --- What earlier tasks fell to is told to later ones, in whole runs of the machine.

GOAL = "Fix the rounding of the invoices"
FELL = "assert 3 == 4 in <split>"
SHOWN = "assert 3 == 4 in &lt;split&gt;"
REACT_LESSONS = {"main": [calls("shout"), say()]}


class Away(InMemoryStore):
    """A store whose answers fail, or never come."""

    hangs = False

    @override
    async def abatch(self, ops: Any) -> list[Result]:
        if self.hangs:
            await asyncio.Event().wait()
        raise ConnectionError("the store is away")


def machine(
    script: Any,
    store: BaseStore | None,
    *,
    saver: BaseCheckpointSaver[Any] | None = None,
    evolution: dict[str, Any] | None = None,
    **sections: Any,
) -> Run:
    """A thread of a machine over a store, to which lessons are fed back."""
    model = RecordingModel(script=script)
    given = settings(
        spec_review={"enabled": False},
        memory={"enabled": False},
        evolution={"observe_only": False, "namespace": "ours"} | (evolution or {}),
        **sections,
    )
    saver = saver or memory()
    run = Run({}, graph=build_graph(model, [shout], given, checkpointer=saver, store=store))
    run.model = model
    return run


async def met(store: BaseStore, text: str = FELL, *, actor: str = "main", goal: str = GOAL) -> str:
    """Have a task on record that fell to something; return the pitfall's id."""
    setback = Setback(kind="check", actor=actor, signature=text, text=text, ended=True)
    ended = Experience(
        task_id=f"earlier/{text}", owner="ours", mode="react", status="failed", goal=goal,
        at=time.time(), setbacks=(setback,),
    )  # fmt: skip
    return (await on_record(Pitfalls(store, "ours"), setback, ended, 0.5)).id


def holding(**changes: Any) -> InMemoryStore:
    store = InMemoryStore()
    asyncio.run(met(store, **changes))
    return store


def blocks(request: Sequence[BaseMessage]) -> list[str]:
    return [str(m.text) for m in request if str(m.text).startswith("<historical_pitfalls>")]


def by_node(run: Run) -> list[tuple[bool, int]]:
    """For each request: whether it asks for a plan, and how many blocks it holds."""
    told = ((str(sent[0].text), len(blocks(sent))) for sent in run.model.requests)
    return [(head.startswith("You plan a task"), count) for head, count in told]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("direct_chat", [(False, 0)]),
        ("react", [(False, 1), (False, 1)]),
        ("plan_exec", [(True, 1), (False, 0), (False, 0)]),
        ("team_collab", [(True, 1), (False, 0), (False, 0)]),
    ],
)
def test_who_can_avoid_it_is_told(mode: str, expected: list[tuple[bool, int]]) -> None:
    """EV-05: the planner where there is one, else main, in one block behind the prompt."""
    script = {
        "plan": [phases({"id": "a", "expert": "developer"})],
        "main": [say()] if mode == "direct_chat" else [calls("shout"), say()],
    }
    run = machine(script, holding()).ask(GOAL, mode=mode)

    assert run.result.status == "completed"
    assert by_node(run) == expected
    told = [block for sent in run.model.requests for block in blocks(sent)]
    assert all("Historical pitfalls to avoid" in block and SHOWN in block for block in told)
    assert [illegal(request) for request in run.model.requests] == [[]] * len(expected)


def test_the_result_and_the_events_say_what_was_told() -> None:
    """MO-07: and where nothing was, the result is as it ever was."""
    run, without = (
        machine(REACT_LESSONS, holding()).ask(GOAL),
        machine(REACT_LESSONS, None).ask(GOAL),
    )

    (event,) = run.happened("lessons_given")
    told = run.result.to_dict()["lessons"]["pitfalls"]
    assert [each["text"] for each in told] == [FELL]
    assert event["pitfalls"] == (told[0]["id"],)
    assert "lessons" not in without.result.to_dict()
    assert without.happened("lessons_given") == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("hangs", [False, True])
def test_a_store_that_fails_costs_at_most_the_limit(*, hangs: bool) -> None:
    """EV-05: none, a warning, and the task goes on."""
    store = Away()
    store.hangs = hangs
    began = time.monotonic()

    run = machine(REACT_LESSONS, store).ask(GOAL)

    assert time.monotonic() - began < SECONDS + 5.0
    why = "no answer within 2 s" if hangs else "the store is away"
    note = f"no lessons of earlier tasks were looked up: {why}"
    assert (run.result.status, run.result.notes) == ("completed", (note,))
    assert [event["note"] for event in run.happened("lessons_given")] == [note]
    assert "lessons" not in run.result.to_dict()


def test_lessons_stay_over_a_stop_and_in_a_fork() -> None:
    """DU-01: forgotten meanwhile, they still stand in the requests of the task."""
    store, saver = InMemoryStore(), memory()
    id_ = asyncio.run(met(store))
    script = {"plan": [phases({"id": "a"})], "main": [say()]}
    stopped = machine(script, store, saver=saver)
    request = {"messages": [HumanMessage(GOAL)], "mode": "plan_exec"}
    stopped.send(request, interrupt_before=["plan"])
    assert asyncio.run(Pitfalls(store, "ours").forget(id_))

    again = machine(script, store, saver=saver).send(None)
    at_plan = next(s for s in again.graph.get_state_history(again.config) if s.next == ("plan",))
    fork = machine(script, store, saver=saver)
    fork.config = at_plan.config
    fork.send(None)

    assert [len(blocks(run.model.requests[0])) for run in (stopped, again, fork)[1:]] == [1, 1]
    assert blocks(again.model.requests[0]) == blocks(fork.model.requests[0])


def test_a_later_task_of_the_thread_has_lessons_of_its_own() -> None:
    """What the one before was told is not told again."""
    run = machine({"main": [say(), say()]}, holding()).ask(GOAL).ask("Draw the company's logo")

    assert [len(blocks(request)) for request in run.model.requests] == [1, 0]
    assert run.result.lessons is None


def test_learned_instructions_stand_in_their_actor_s_prompt() -> None:
    """EV-03: main's, the planner's and an expert's, each its own."""
    store = InMemoryStore()

    async def promote() -> None:
        for actor, place in (("main", "system"), ("plan", "plan"), ("developer", "system")):
            text = f"Keep in mind what the {actor} learned."
            made = {"text": text, "advice": text, "status": "promoted", "place": place}
            variant: Any = {"id": f"{actor}-2", "owner": "ours", "actor": actor} | made
            await Variants(store, "ours").put(Variant(**variant))

    asyncio.run(promote())
    for mode, expected in {
        "react": ["main", "main"],
        "plan_exec": ["plan", "main", "main"],
        "team_collab": ["plan", "developer", "developer"],
    }.items():
        script = {
            "plan": [phases({"id": "a", "expert": "developer"})],
            "main": [calls("shout"), say()],
        }
        run = machine(script, store).ask(GOAL, mode=mode)

        # One task in ten is a control, and is told nothing: by the digest of its id.
        given = {i.actor for i in run.state.lessons.instructions if i.text}  # type: ignore[union-attr]  # it is there
        heads = [str(sent[0].text) for sent in run.model.requests]
        told = [
            [a for a in ("main", "plan", "developer") if f"the {a} learned" in h] for h in heads
        ]
        assert told == [[actor] if actor in given else [] for actor in expected]
        assert given


def test_they_are_the_first_that_go_where_room_is_short() -> None:
    """CX-01: with the memories, and the result says so."""
    store = InMemoryStore()
    goal = " ".join((GOAL, *(f"part{number}" for number in range(110))))
    for name in "abc":
        asyncio.run(met(store, f"assert {' '.join([name * 3] * 70)}", goal=goal))

    full = machine(REACT_LESSONS, store).ask(goal)
    short = machine(REACT_LESSONS, store, llm={"context_window_tokens": 1000}).ask(goal)

    assert [len(blocks(request)) for request in full.model.requests] == [1, 1]
    assert [len(blocks(request)) for request in short.model.requests] == [0, 0]
    assert [cost.saved.keys() for cost in short.result.context_cost] == [{"memory"}]


@pytest.mark.parametrize("sealed", [False, True])
async def test_it_works_on_postgres_and_by_astream(postgres_url: str, *, sealed: bool) -> None:
    """The store in use, a sealed one too."""
    async with aopen_postgres(postgres_url, key=bytes(range(32)) if sealed else None) as postgres:
        await met(postgres.store)
        await met(postgres.store, "the logo is red", goal="Draw the logo of the company")
        model = RecordingModel(script=REACT_LESSONS)
        given = settings(evolution={"observe_only": False, "namespace": "ours"})
        graph: Any = build_graph(model, [shout], given, postgres)
        config = {"configurable": {"thread_id": "t"}}

        parts = [p async for p in graph.astream({"messages": [("user", GOAL)]}, config)]
        assert await graph.evolution.adrain(30)

    assert "finish" in parts[-1]
    assert [SHOWN in block for sent in model.requests for block in blocks(sent)] == [True, True]
    assert "logo" not in str(model.requests)
