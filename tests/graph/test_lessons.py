"""What earlier tasks fell to is told to later ones, in whole runs of the machine."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, Result
from langgraph.store.memory import InMemoryStore
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, Run, calls, illegal, phases, say, shout
from tests.tools.evolution.ended_tasks import on_record
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.storage.postgres import aopen_postgres
from daruma.state.lessons import Experience, Setback
from daruma.tools.evolution.lessons import SECONDS
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.variants import Variant, Variants

GOAL = "Fix the rounding of the invoices"
FELL = "assert 3 == 4 in <split>"
SHOWN = "assert 3 == 4 in &lt;split&gt;"
REACT = {"main": [calls("shout"), say()]}


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
    run, without = machine(REACT, holding()).ask(GOAL), machine(REACT, None).ask(GOAL)

    (event,) = run.happened("lessons_given")
    told = run.result.to_dict()["lessons"]["pitfalls"]
    assert [each["text"] for each in told] == [FELL]
    assert event["pitfalls"] == (told[0]["id"],)
    assert "lessons" not in without.result.to_dict()
    assert without.happened("lessons_given") == []


def test_a_planner_is_told_what_happened_to_experts() -> None:
    """EV-04: with the expert's name on it."""
    script = {"plan": [phases({"id": "a", "expert": "developer"})], "main": [say()]}
    run = machine(script, holding(actor="developer")).ask(GOAL, mode="team_collab")

    (block,) = blocks(run.model.requests[0])
    assert 'actor="developer"' in block


@pytest.mark.parametrize("off", [{"observe_only": True}, {"enabled": False}])
def test_where_nothing_is_fed_back_requests_are_as_ever(off: dict[str, Any]) -> None:
    """EV-03: letter for letter those of a machine without a store."""
    run, bare = machine(REACT, holding(), evolution=off), machine(REACT, None)

    run.ask(GOAL)
    bare.ask(GOAL)

    texts = [[[m.text for m in sent] for sent in each.model.requests] for each in (run, bare)]
    assert texts[0] == texts[1]
    assert run.state.lessons is None


@pytest.mark.parametrize("hangs", [False, True])
def test_a_store_that_fails_costs_at_most_the_limit(*, hangs: bool) -> None:
    """EV-05: none, a warning, and the task goes on."""
    store = Away()
    store.hangs = hangs
    began = time.monotonic()

    run = machine(REACT, store).ask(GOAL)

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

    full = machine(REACT, store).ask(goal)
    short = machine(REACT, store, llm={"context_window_tokens": 1000}).ask(goal)

    assert [len(blocks(request)) for request in full.model.requests] == [1, 1]
    assert [len(blocks(request)) for request in short.model.requests] == [0, 0]
    assert [cost.saved.keys() for cost in short.result.context_cost] == [{"memory"}]


@pytest.mark.parametrize("sealed", [False, True])
async def test_it_works_on_postgres_and_by_astream(postgres_url: str, *, sealed: bool) -> None:
    """The store in use, a sealed one too."""
    async with aopen_postgres(postgres_url, key=bytes(range(32)) if sealed else None) as postgres:
        await met(postgres.store)
        await met(postgres.store, "the logo is red", goal="Draw the logo of the company")
        model = RecordingModel(script=REACT)
        given = settings(evolution={"observe_only": False, "namespace": "ours"})
        graph: Any = build_graph(model, [shout], given, postgres)
        config = {"configurable": {"thread_id": "t"}}

        parts = [p async for p in graph.astream({"messages": [("user", GOAL)]}, config)]
        assert await graph.evolution.adrain(30)

    assert "finish" in parts[-1]
    assert [SHOWN in block for sent in model.requests for block in blocks(sent)] == [True, True]
    assert "logo" not in str(model.requests)
