"""Learning goes on beside runs: nothing that it does, or fails to do, is felt in one."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from tests.evolution_stores import ILL, Ill, IllStore
from tests.learned_tasks import CONFIG, REACT
from tests.parts import a_state, a_task, memory, settings
from tests.scripted_runs import calls, say, shout

from daruma.graph.build import build_graph
from daruma.graph.learning import Counts, Ended, Evolution
from daruma.graph.learning_jobs import Jobs
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.state.lessons import Experience
from daruma.state.settings import Settings
from daruma.tools.evolution.learning import Learning

ALL = settings(evolution={"success_sample_rate": 1.0}, sandbox={"require": "none"})
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
    given = settings(
        evolution={"success_sample_rate": 1.0, **evolution}, sandbox={"require": "none"}
    )
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
    """All that a run shows, but for its times and ids: events, state and result."""
    events = [{**event, "at": 0, "seconds": 0} for event in way(graph)]
    values = graph.get_state(CONFIG).values
    result = values["result"].to_dict()
    said = [(message.type, message.text) for message in values["messages"]]
    return ([each["type"] for each in events], said, result | {"timings": {}}, sorted(values))


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke, by_astream])
@pytest.mark.parametrize("ill", ILL)
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


def test_a_copy_of_a_graph_counts_with_it() -> None:
    """It is the same graph with one thing changed, such as its store."""
    graph = graph_with(IllStore())

    graph.copy({"name": "other"}).invoke(REACT, CONFIG)

    assert graph.evolution.drain()
    assert graph.evolution.counts.learned == 1
