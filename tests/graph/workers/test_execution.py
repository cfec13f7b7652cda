"""Carrying out one job, parking reviews, and telling of both."""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from subprocess import PIPE, Popen
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot
from tests.parts import settings
from tests.scripted_runs import calls, phases, say
from tests.waiting import cost_of
from tests.worker_kill import QUICK
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.requests import PARK
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres, aopen_postgres, ledger_of, open_postgres
from daruma.graph.workers import asubmit, asweep, awork, work
from daruma.graph.workers._execution import (
    DONE,
    SUBMISSION,
    Announcing,
    Submission,
    carry_out,
    park,
    rest_of,
)
from daruma.state.interrupts import ReplyRefused
from daruma.state.settings import Settings

# --- What a run tells is kept beside it, whatever its tools tell.


async def test_what_is_no_json_is_left_out(postgres_url: str) -> None:
    """An application's tool may stream anything: the run's own events are told all the same."""
    circle: dict[str, object] = {"type": "circle"}
    circle["self"] = circle
    async with aopen_postgres(postgres_url) as pg:
        log = pg.checkpointer.events
        async with Announcing.of(log, "t", "r") as announcing:
            announcing.tell({"type": "first"})
            announcing.tell({"type": "keys", (1, 2): 3})
            announcing.tell(circle)
            announcing.tell("words")
            announcing.tell({"type": "last"})
        heard = await log.read("t", 0)

    assert [each.type for each in heard] == ["first", "last"]


# --- A job that is done twice, as its worker died, does once what was asked for.

YES: Mapping[str, Any] = {"decision": "confirm"}
REQUEST = Submission("t", {"messages": [HumanMessage("Go", id="m")]}, name="job")
REPLY = Submission("t", Command(resume={"q": YES}), name="job")
GO_ON = Submission("t", None, name="job")


def review(*, parked: bool = False) -> dict[str, Any]:
    about: dict[str, Any] = {"id": "r", "spec_review_id": "r", "goal": "g", "phases": []}
    about |= {"type": "spec_review_request", "deadline": None}
    return about | ({"parked": True} if parked else {})


def thread(
    *messages: str,
    by: str = "",
    work: bool = False,
    asks: str = "",
    there: bool = True,
    **more: Any,
) -> StateSnapshot:
    """A thread with messages of these ids, made by a job, with unfinished work or a question."""
    interrupts = (Interrupt(value=review(**more), id=asks),) if asks else ()
    tasks = (PregelTask(id="x", name="n", path=(), interrupts=interrupts),) if work or asks else ()
    values = {"messages": [HumanMessage("Go", id=id_) for id_ in messages]} if messages else {}
    metadata: Any = {SUBMISSION: by}
    created = "now" if there else None
    return StateSnapshot(values, (), {}, metadata, created, None, tasks, interrupts)


@pytest.mark.parametrize(
    ("submission", "snapshot", "known", "rest"),
    [
        (REQUEST, thread(there=False), {}, REQUEST.given),
        (REQUEST, thread("older"), {}, REQUEST.given),
        (REQUEST, thread("older", work=True), {}, REQUEST.given),  # which the door refuses
        (REQUEST, thread(by="job", work=True), {}, None),
        (REQUEST, thread("m", work=True), {}, None),
        (REQUEST, thread("m", asks="q"), {}, DONE),
        (REQUEST, thread("m", asks="q"), {"q": YES}, None),
        (REQUEST, thread("m"), {}, DONE),
        (REPLY, thread("m", asks="q"), {}, REPLY.given),
        (REPLY, thread("m", asks="q"), {"q": dict(YES)}, None),
        (REPLY, thread("m", work=True), {"q": dict(YES)}, None),
        (REPLY, thread("m", asks="next"), {"q": dict(YES)}, DONE),
        (REPLY, thread("m", asks="again", parked=True), {"q": PARK}, REPLY.given),
        (REPLY, thread("m", work=True, by="job"), {"q": PARK}, None),
        (REPLY, thread("m"), {}, REPLY.given),  # which the door refuses
        (GO_ON, thread("m", work=True), {}, None),
        (GO_ON, thread("m"), {}, DONE),
        (GO_ON, thread(there=False), {}, None),  # which the door refuses
    ],
)
def test_what_is_left_of_a_submission(
    submission: Submission, snapshot: StateSnapshot, known: dict[str, Any], rest: Any
) -> None:
    """Seen from the thread alone: nobody else knows how far the dead worker came."""
    assert rest_of(submission, snapshot, known, 0.0) is rest


def test_a_reply_to_what_was_answered_otherwise_is_refused() -> None:
    """The first one counts."""
    known = {"q": {"decision": "reject", "feedback": "no"}}

    with pytest.raises(ReplyRefused, match="the first"):
        rest_of(REPLY, thread("m", work=True), known, 0.0)


async def test_a_request_that_was_begun_is_not_made_again(postgres_url: str) -> None:
    """Killed at its very first checkpoint, which has no message yet, and after its end."""
    async with aopen_postgres(postgres_url) as pg:
        graph = build_graph(ScriptedChatModel(script=[say("Hi.")]), (), Settings(), persistence=pg)
        asked = {"messages": [HumanMessage("Hello", id="m")], "mode": "direct_chat"}
        submission = Submission("t", asked)
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": submission.metadata}
        parts = graph.astream(asked, config, stream_mode="checkpoints")
        await anext(parts)
        await parts.aclose()  # type: ignore[attr-defined]
        begun = await graph.aget_state(config)

        first, again = await carry_out(graph, submission), await carry_out(graph, submission)

        assert begun.values["messages"] == []
        assert [each.text for each in first.values["messages"]] == ["Hello", "Hi."]
        assert again.config == first.config


async def test_a_reply_that_was_accepted_is_carried_out(postgres_url: str) -> None:
    """Its worker died between the two."""
    async with aopen_postgres(postgres_url) as pg:
        script = {"plan": [phases("one")], "main": [say()]}
        graph = build_graph(ScriptedChatModel(script=script), (), Settings(), persistence=pg)
        asked = {"messages": [HumanMessage("Go", id="m")], "mode": "plan_exec"}
        (question,) = (await carry_out(graph, Submission("t", asked))).interrupts
        reply = Submission("t", Command(resume={question.id: dict(YES)}))
        await ledger_of(graph.checkpointer).replies.accept("t", reply.replies)

        ended = await carry_out(graph, reply)

        assert ended.values["result"].status == "completed"


async def test_a_tool_that_ran_does_not_run_again(postgres_url: str) -> None:
    """The job is given out again after the thread has ended."""
    heard: list[str] = []

    def shout(text: str) -> str:
        """Say it loudly."""
        heard.append(text)
        return text

    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script=[calls("shout"), say()])
        graph = build_graph(model, [shout], Settings(), persistence=pg)
        asked = {"messages": [HumanMessage("Go", id="m")], "mode": "react"}
        for _ in range(3):
            ended = await carry_out(graph, Submission("t", asked))

        assert (heard, ended.values["result"].status) == (["hello"], "completed")


# --- Reviews whose deadline has passed are parked once, by whoever comes along first (PL-03).

PLANNED: Any = {"messages": [("user", "Do it")], "mode": "plan_exec"}
SWEEPER = """
import json, sys
from daruma import Settings, build_graph, open_postgres, sweep
with open_postgres(sys.argv[1]) as pg:
    graph = build_graph(settings=Settings(), persistence=pg)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(sweep(graph)))
"""


def graph_on(pg: Postgres, timeout: float) -> Machine:
    model = ScriptedChatModel(script={"plan": [phases("one")], "main": [say()]})
    return build_graph(model, (), settings(spec_review={"timeout": timeout}), persistence=pg)


def config(thread: str, **metadata: Any) -> Any:
    return {"configurable": {"thread_id": thread}, "metadata": metadata}


def parkings(url: str) -> list[tuple[str, int]]:
    """How many times each thread was parked: the step after it is one that only a park makes."""
    counted = """
        SELECT thread_id, count(*) FROM daruma_replies GROUP BY thread_id ORDER BY thread_id
    """
    with psycopg.connect(url) as connection:
        return connection.execute(counted).fetchall()


@pytest.mark.long
def test_two_sweepers_park_each_thread_once(postgres_url: str) -> None:
    """Twenty threads that are overdue: together, two processes park each of them once."""
    names = [f"t{number:02}" for number in range(20)]
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg, timeout=0.001)
        for name in names:
            graph.invoke(PLANNED, config(name))
        before = {name: len([*graph.get_state_history(config(name))]) for name in names}
        sweepers = [
            Popen([sys.executable, "-c", SWEEPER, postgres_url], stdin=PIPE, stdout=PIPE, text=True)
            for _ in range(2)
        ]
        ready = [each.stdout.readline() for each in sweepers if each.stdout]
        for each in sweepers:
            assert each.stdin
            each.stdin.write("\n")
            each.stdin.flush()
        said = [json.loads(each.communicate()[0]) for each in sweepers]

        assert ready == ["ready\n"] * 2
        assert sorted(said[0] + said[1]) == names
        statuses = {graph.get_state(config(name)).values["result"].status for name in names}
        after = {name: len([*graph.get_state_history(config(name))]) for name in names}
    assert statuses == {"parked"}
    assert {after[name] - before[name] for name in names} == {1}
    assert parkings(postgres_url) == [(name, 1) for name in names]


async def test_what_is_not_overdue_stays(postgres_url: str) -> None:
    """So does a plan that is parked already, or that somebody goes on with; nothing is told."""
    async with aopen_postgres(postgres_url) as pg:
        late, early = graph_on(pg, timeout=0.001), graph_on(pg, timeout=1800)
        await early.ainvoke(PLANNED, config("early"))
        await late.ainvoke(PLANNED, config("late", daruma_model="m"))
        before = await late.aget_state(config("early"))

        swept = [await asweep(late), await asweep(late), [await park(late, "late")]]

        assert swept == [["late"], [], [False]]
        assert (await late.aget_state(config("early"))).config == before.config
        kept = (await late.aget_state(config("late"))).metadata or {}
        assert kept["daruma_model"] == "m"  # type: ignore[typeddict-item]


async def test_a_review_is_parked_at_its_deadline(postgres_url: str) -> None:
    """By a timed job that its worker has left behind; nobody waits for it."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, timeout=1.0)
        await asubmit(pg, PLANNED, "t")
        with WorkerLines.heard() as lines:
            worker = asyncio.create_task(awork(graph, pace=QUICK))
            await lines.until("'t': waits for an answer")
            (question,) = (await graph.aget_state(config("t"))).interrupts
            await lines.until("'t': parked")
            parked_at = time.time()
            (again,) = (await graph.aget_state(config("t"))).interrupts
            worker.cancel()
            await asyncio.wait([worker])

        assert 0 <= parked_at - question.value["deadline"] < 5
        assert (again.value["parked"], again.value["deadline"]) == (True, None)


@pytest.mark.long
async def test_a_review_that_was_answered_in_time_is_not_parked(postgres_url: str) -> None:
    """Its timed job finds nothing to do."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, timeout=1800)
        await asubmit(pg, PLANNED, "t")
        await awork(graph, wait=False)
        (question,) = (await graph.aget_state(config("t"))).interrupts
        await asubmit(pg, Command(resume={question.id: {"decision": "confirm"}}), "t")
        await awork(graph, wait=False)
        before = await graph.aget_state(config("t"))  # the timed job is not in the reply's way
        async with pg.pool.connection() as connection:
            await connection.execute("UPDATE procrastinate_jobs SET scheduled_at = now()")

        await awork(graph, wait=False)

        state = await graph.aget_state(config("t"))
        assert state.values["result"].completed
        assert state.config == before.config
        async with pg.pool.connection() as connection:
            found = "SELECT FROM procrastinate_jobs WHERE task_name = 'daruma.park'"
            assert (await connection.execute(found)).rowcount == 0


@pytest.mark.long
def test_a_worker_parks_what_was_begun_elsewhere(postgres_url: str) -> None:
    """A run by hand left no timed job: workers look for such reviews when they begin."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg, timeout=0.001)
        graph.invoke(PLANNED, config("t"))

        work(graph, wait=False)

        assert graph.get_state(config("t")).values["result"].status == "parked"


# --- Threads that wait for a person cost nothing: no process, no connection, no memory (DU-02).

OBJECTS = 25
"""A run that is not let go of holds hundreds; new connections bring a few of their own."""


@pytest.mark.long
async def test_waiting_threads_hold_nothing(postgres_url: str) -> None:
    """Their worker holds next to nothing for each, uses no connection, and can be closed.

    ``python -m tests.waiting`` does so with 200 of them, and measures memory too.
    """
    cost = await cost_of(postgres_url, threads=60)

    assert cost.waiting
    assert (cost.used, cost.left) == (0, 0)
    assert cost.objects < OBJECTS
