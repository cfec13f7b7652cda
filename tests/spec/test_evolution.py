"""Chapter 10: what is learned of tasks that ended, and what becomes of it."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import IndexConfig, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore
from tests.spec.face import Daruma, RecordingModel, calls, create, plan, say
from typing_extensions import override

from daruma import Settings, build_graph, open_postgres

FED_BACK: Final[dict[str, Any]] = {"evolution": {"observe_only": False}}
ALL: Final[dict[str, Any]] = {"evolution": {"success_sample_rate": 1.0}}
TITLE: Final = "Historical pitfalls to avoid"
GOAL: Final = "Mend the rounding of invoices"
RED: Final[dict[str, Any]] = {
    "verification": {"commands": ["echo 'test_sum: assert 3 == 4'; exit 1"]},
    "budgets": {"preset": "frugal", "reflect": 0, "verify": 1},
    "fallback_chain": {"recovery": {"enabled": False}},
}
FAILS: Final = [calls(create("f", "x")), say("Done.")]


class Tasks:
    """Tasks over one store, each on a thread of its own."""

    def __init__(self, store: Any = None, persistence: Any = None, **sections: Any) -> None:
        self.kept: dict[str, Any] = {"checkpointer": InMemorySaver(), "store": store}
        if persistence:
            self.kept = {"persistence": persistence}
        self.sections = sections
        self.count = 0

    def run(self, script: Any, workspace: Path | None = None, **request: Any) -> Any:
        """Run one to its end, wait for what is learned of it, and return its result."""
        self.count += 1
        self.model = RecordingModel(script=script)
        self.graph: Any = build_graph(self.model, (), Settings(**self.sections), **self.kept)
        asked = {"messages": [("user", GOAL)], **request}
        if workspace:
            asked["workspace"] = str(workspace)
            for each in workspace.iterdir():
                each.unlink()
        done = self.graph.invoke(asked, {"configurable": {"thread_id": f"t{self.count}"}})
        assert self.graph.evolution.drain(20)
        return done["result"]

    @property
    def learned(self) -> int:
        """How many tasks of the newest graph were learned from."""
        return int(self.graph.evolution.counts.learned)

    @property
    def warned(self) -> bool:
        """Whether the newest task's first request named pitfalls."""
        return TITLE in self.model.requests[0].text


# --- EV-01, EV-02: beside the task.


@pytest.mark.parametrize(
    ("script", "request_", "sections", "learned"),
    [
        ([say("")] * 9, {}, {}, 1),
        ([say()], {}, ALL, 1),
        ([say()], {}, {"evolution": {"success_sample_rate": 0.0}}, 0),
        ([say()], {"mode": "direct_chat"}, ALL, 0),
    ],
    ids=["a failure always", "a sampled success", "another success", "a chat"],
)
def test_what_has_ended_is_learned_from(
    script: Any, request_: Any, sections: Any, learned: int
) -> None:
    """EV-01: failures always, successes by their share, a chat never."""
    off: dict[str, Any] = {"fallback_chain": {"recovery": {"enabled": False}}}
    tasks = Tasks(InMemoryStore(), **off, **sections)
    tasks.run(script, **request_)

    assert tasks.learned == learned


async def test_a_stream_that_is_left_is_learned_from_too() -> None:
    """EV-01: on every path; here a run that its caller cancels in the middle."""
    model = RecordingModel(script=[{"say": "late", "wait": 300}])
    graph: Any = build_graph(model, (), Settings(**ALL), store=InMemoryStore())
    request = {"messages": [("user", GOAL)]}
    stream = graph.astream(request, {"configurable": {"thread_id": "t"}}, stream_mode="custom")
    async for event in stream:
        if event["type"] == "model_call_started":
            break
    await stream.aclose()

    assert await asyncio.to_thread(graph.evolution.drain, 20)
    assert graph.evolution.counts.accepted == 1


class StuckStore(InMemoryStore):
    """Keeps whoever writes what was learned, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.came, self.let_go = threading.Event(), threading.Event()

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        if any(isinstance(op, PutOp) and "evolution" in op.namespace for op in given):
            self.came.set()
            await asyncio.to_thread(self.let_go.wait, 60)
        return await super().abatch(given)


def test_a_store_that_hangs_delays_no_answer_and_pending_work_is_bounded() -> None:
    """EV-02: twice `max_concurrent` wait, more are dropped and counted; and EV-01: all answer."""
    store = StuckStore()
    sections: dict[str, Any] = {"evolution": {"success_sample_rate": 1.0, "max_concurrent": 1}}
    graph: Any = build_graph(RecordingModel(script=[say()]), (), Settings(**sections), store=store)
    results = [graph.invoke({"messages": [("user", GOAL)]})["result"].status for _ in range(5)]
    assert store.came.wait(20)
    waiting = graph.evolution.counts
    store.let_go.set()

    assert results == ["completed"] * 5
    assert (waiting.accepted, waiting.dropped, waiting.learned) == (2, 3, 0)
    assert graph.evolution.drain(20)
    assert graph.evolution.counts.learned == 2


def test_closing_waits_for_what_is_pending(postgres_url: str) -> None:
    """EV-02: shutdown drains."""
    with open_postgres(postgres_url) as pg:
        model = RecordingModel(script=[say()])
        graph: Any = build_graph(model, (), Settings(**ALL), persistence=pg)
        graph.invoke({"messages": [("user", GOAL)]}, {"configurable": {"thread_id": "t"}})

    assert graph.evolution.counts.learned == 1


class BrokenStore(InMemoryStore):
    """Fails whatever is asked of it for learning."""

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        if any("evolution" in str(op) for op in given):
            raise ConnectionError("the store is gone")
        return await super().abatch(given)


def test_a_store_that_fails_costs_the_task_nothing_but_a_note(workspace: Path) -> None:
    """EV-05: no pitfalls, a warning, and the task goes on; and EV-01: it never fails it."""
    tasks = Tasks(BrokenStore(), **FED_BACK)
    result = tasks.run([say("Answered.")], workspace)

    assert (result.status, result.output) == ("completed", "Answered.")
    assert any("the store is gone" in note for note in result.notes)
    assert not tasks.warned


# --- EV-03 to EV-05: what is kept, whose it is, and what is fed back.


def test_by_default_it_records_and_feeds_nothing_back(daruma: Daruma) -> None:
    """EV-03: the same requests to the letter; the pitfall is there, and is listed."""
    workspace = daruma.folder / "ws"
    with open_postgres(daruma.url) as pg:
        tasks = Tasks(persistence=pg, **RED)
        tasks.run(FAILS, workspace)
        first = [each.text for each in tasks.model.requests]
        tasks.run(FAILS, workspace)
        assert [each.text for each in tasks.model.requests] == first
    listed = daruma("pitfalls", "list", "--workspace", str(workspace), "--json").json

    assert any("assert 3 == 4" in each["text"] for each in listed)


def test_what_is_not_sure_enough_is_marked_and_not_told(daruma: Daruma) -> None:
    """EV-03: below `min_confidence` a pitfall is kept, marked low, and enters no request."""
    workspace = daruma.folder / "ws"
    unsure: dict[str, Any] = {"evolution": {"observe_only": False, "min_confidence": 0.99}}
    with open_postgres(daruma.url) as pg:
        tasks = Tasks(persistence=pg, **RED | unsure)
        tasks.run(FAILS, workspace)
        tasks.run(FAILS, workspace)
        assert not tasks.warned
    daruma.configure("evolution: {min_confidence: 0.99}\n")
    every = daruma("pitfalls", "list", "--all", "--workspace", str(workspace), "--json").json

    assert {each["level"] for each in every} == {"low"}


def test_a_pitfall_enters_the_first_request_of_the_next_task_alike(workspace: Path) -> None:
    """EV-05: the planner's in a plan, main's else; of another goal it is not told."""
    store = InMemoryStore()
    tasks = Tasks(store, **RED | FED_BACK)
    tasks.run(FAILS, workspace)
    assert not tasks.warned
    tasks.run(FAILS, workspace)
    assert tasks.warned
    assert "assert 3 == 4" in tasks.model.requests[0].text

    script = {"plan": [plan({"id": "a"})], "main": FAILS}
    planned = Tasks(store, **RED | FED_BACK, spec_review={"enabled": False})
    planned.run(script, workspace, mode="plan_exec")
    assert planned.model.requests[0].role == "plan"
    assert planned.warned
    other = {"messages": [("user", "Draw a blue bird for the kitchen door")]}
    tasks.run([say()], workspace, **other)
    assert not tasks.warned


def test_no_more_than_three_pitfalls_are_told_by_one_query(workspace: Path) -> None:
    """EV-05: however many there are; what it costs is one call of the store."""
    store = CountingStore()
    for number in range(5):
        red = f"echo 'test_{'abcde'[number]}: assert {number} == 9'; exit 1"
        sections = RED | {"verification": {"commands": [red]}}
        Tasks(store, **sections).run(FAILS, workspace)
    store.queries = 0
    tasks = Tasks(store, **RED | FED_BACK)
    result = tasks.run([say()], workspace)

    assert tasks.warned
    assert len(result.lessons.pitfalls) == 3
    assert store.queries == 1


class CountingStore(InMemoryStore):
    """Counts how often it is asked for what was learned while the answer is not there yet."""

    queries = 0

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        if any("pitfalls" in str(op) and not isinstance(op, PutOp) for op in given):
            self.queries += threading.current_thread().name != "daruma-evolution"
        return await super().abatch(given)


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, True)],
)
def test_others_see_what_was_learned_only_if_both_agree(
    tmp_path: Path, workspace: Path, *, theirs: bool, ours: bool, told: bool
) -> None:
    """EV-04: another workspace's pitfalls are as if they did not exist."""
    store = InMemoryStore()
    (tmp_path / "theirs").mkdir()
    shared: dict[str, Any] = {"evolution": {"observe_only": False, "shared": theirs}}
    Tasks(store, **RED | shared).run(FAILS, tmp_path / "theirs")
    own: dict[str, Any] = {"evolution": {"observe_only": False, "shared": ours}}
    tasks = Tasks(store, **RED | own)
    tasks.run([say()], workspace)

    assert tasks.warned is told


def test_a_pitfall_names_its_actor_and_of_others_nothing_is_said(daruma: Daruma) -> None:
    """EV-04: asking for another workspace's is answered as asking for what is not there."""
    workspace, other = daruma.folder / "ws", daruma.folder / "other"
    other.mkdir()
    with open_postgres(daruma.url) as pg:
        Tasks(persistence=pg, **RED).run(FAILS, workspace)
    (own,) = daruma("pitfalls", "list", "--workspace", str(workspace), "--json").json
    there = daruma("pitfalls", "show", own["id"], "--workspace", str(other))
    not_there = daruma("pitfalls", "show", "0" * len(own["id"]), "--workspace", str(other))

    assert own["actor"] == "main"
    assert there.code == not_there.code != 0
    assert there.err.replace(own["id"], "ID") == not_there.err.replace("0" * len(own["id"]), "ID")


def test_pitfalls_are_found_by_meaning(workspace: Path) -> None:
    """EV-05a: where the store has an index of meanings, also a goal that shares no word."""

    def embed(texts: Sequence[str]) -> list[list[float]]:
        money = ("rounding", "invoices", "cents", "bills")
        return [[1.0, 0.0] if any(w in text for w in money) else [0.0, 1.0] for text in texts]

    index: IndexConfig = {"dims": 2, "embed": embed, "fields": ["$"]}
    tasks = Tasks(InMemoryStore(index=index), **RED | FED_BACK)
    tasks.run(FAILS, workspace)
    alike = {"messages": [("user", "Why do cents vanish from customers' bills?")]}
    tasks.run([say()], workspace, **alike)

    assert tasks.warned


def test_what_was_told_helps_the_second_pass(workspace: Path) -> None:
    """EV-06: a model that heeds what it is told fails once with learning, twice without."""
    failed = {}
    for name, sections in (("on", FED_BACK), ("off", {"evolution": {"enabled": False}})):
        tasks = Tasks(InMemoryStore(), **RED | sections)
        ends = []
        for _ in range(2):
            warned = tasks.count > 0 and name == "on"
            script = [say("As I was told.") | {"expect": [TITLE]}] if warned else FAILS
            ends.append(tasks.run(script, workspace).status)
        failed[name] = [end != "completed" for end in ends]

    assert failed == {"on": [True, False], "off": [True, True]}
