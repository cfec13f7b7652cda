"""Workers carry out what was submitted: each thread's in its order, and once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from psycopg.conninfo import make_conninfo
from tests.fault_proxy import fault_proxy
from tests.parts import settings
from tests.scripted_runs import calls, phases, say
from tests.worker_kill import QUICK
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.requests import RequestRefused
from daruma.graph.run import Machine
from daruma.graph.standing import standings
from daruma.graph.storage import Postgres, aopen_postgres, athread_held, open_postgres
from daruma.graph.workers import Pace, acancel, asubmit, awork, submit, work
from daruma.graph.workers._execution import NotShared
from daruma.state.errors import StorageUnavailable
from daruma.state.interrupts import ReplyRefused

ASKED = {"messages": [("user", "Do it")], "mode": "react"}
PLANNED = {"messages": [("user", "Do it")], "mode": "plan_exec"}
THREAD: Any = {"configurable": {"thread_id": "t"}}
SCRIPT = {"plan": [phases("one")], "main": [say("First."), say("Second."), say("Third.")]}


def graph_on(pg: Postgres, script: Any = SCRIPT, tools: Any = (), **sections: Any) -> Machine:
    given = settings(**sections)
    return build_graph(ScriptedChatModel(script=script), tools, given, persistence=pg)


async def stood(graph: Machine, thread: str = "t") -> Any:
    return await graph.aget_state({"configurable": {"thread_id": thread}})


async def said_on(graph: Machine, thread: str = "t") -> list[str]:
    values = (await stood(graph, thread)).values
    return [message.text for message in values["messages"]]


async def jobs_on(pg: Postgres) -> list[tuple[str, str]]:
    """What is in the queue, but for what looks after it: names and statuses."""
    async with pg.pool.connection() as connection:
        found = await connection.execute(
            "SELECT task_name, status FROM procrastinate_jobs "
            "WHERE task_name IN ('daruma.carry_out', 'daruma.park') ORDER BY id"
        )
        return [(row["task_name"], row["status"]) for row in await found.fetchall()]


@asynccontextmanager
async def at_work(
    graph: Machine, pace: Pace = QUICK, *, wait: bool = True
) -> AsyncIterator[WorkerLines]:
    """Have a worker meanwhile, and hear what it says."""
    with WorkerLines.heard() as lines:
        worker = asyncio.create_task(awork(graph, concurrency=4, pace=pace, wait=wait))
        try:
            yield lines
        finally:
            worker.cancel()
            await asyncio.wait([worker])


def test_what_was_submitted_is_carried_out(postgres_url: str) -> None:
    """DU-07: synchronously, with a name that is made up; and nothing is left in the queue."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        thread = submit(pg, ASKED)

        work(graph, wait=False)

        result = graph.get_state({"configurable": {"thread_id": thread}}).values["result"]
        assert (result.status, result.output) == ("completed", "First.")
        with psycopg.connect(postgres_url) as connection:
            left = "SELECT FROM procrastinate_jobs WHERE task_name = 'daruma.carry_out'"
            assert connection.execute(left).rowcount == 0


@pytest.mark.long
async def test_one_thread_s_requests_are_carried_out_in_their_order(postgres_url: str) -> None:
    """However many threads a worker runs at once."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        for number in range(3):
            asked = {"messages": [("user", f"{number}")], "mode": "direct_chat"}
            await asubmit(pg, asked, "t")

        await awork(graph, concurrency=4, wait=False)

        assert await said_on(graph) == ["0", "First.", "1", "Second.", "2", "Third."]


@pytest.mark.long
async def test_a_tenant_s_queue_lies_in_its_own_schema(postgres_url: str) -> None:
    """The search path of the URL decides where all tables are."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA tenant")
    url = make_conninfo(postgres_url, options="-csearch_path=tenant")
    async with aopen_postgres(url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, ASKED, "t")
        await awork(graph, wait=False)

        assert (await stood(graph)).values["result"].completed
    with psycopg.connect(postgres_url) as connection:
        where = "SELECT table_schema FROM information_schema.tables WHERE table_name = %s"
        found = connection.execute(where, ["procrastinate_jobs"]).fetchall()
    assert found == [("tenant",)]


async def test_the_queue_is_made_once_by_many_at_once(postgres_url: str) -> None:
    """The first to submit anything makes it."""
    async with aopen_postgres(postgres_url) as pg:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(asubmit(pg, ASKED, f"t{number}"))

        assert len(await jobs_on(pg)) == 8


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"messages": []}, "a request needs messages"),
        (ASKED | {"workspace": "/not/there"}, "not a folder that is there"),
        (ASKED | {"mod": "react"}, "did you mean 'mode'"),
        (None, "no thread 't'"),
        (Command(resume={"q": {"decision": "confirm"}}), "no thread 't'"),
    ],
)
async def test_what_can_not_be_run_is_not_queued(
    postgres_url: str, given: Any, refusal: str
) -> None:
    """It is told at once, to whoever submits it."""
    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(RequestRefused, match=refusal):
            await asubmit(pg, given, "t")

        assert await standings(pg.checkpointer.database) == {}


@pytest.mark.parametrize(
    ("message", "more"),
    [
        ({"id": "a\0b"}, {}),
        ({"name": "a\0b"}, {}),
        ({"additional_kwargs": {"a": ["\0"]}}, {}),
        ({}, {"metadata": {"a": {"\0": "b"}}}),
        ({}, {"queue": "a\0b"}),
        ({}, {"queue": "\ud83d"}),
        ({}, {"queue": "q" * 41}),
        ({}, {"queue": "ü" * 21}),
    ],
)
async def test_what_no_row_of_the_queue_holds_is_refused(
    postgres_url: str, message: dict[str, Any], more: dict[str, Any]
) -> None:
    """In one line of ours; a text that only reads like NUL is queued as it is."""
    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(RequestRefused, match="can not be") as refused:
            await asubmit(pg, {"messages": [HumanMessage("Do it", **message)]}, "t", **more)
        with pytest.raises(RequestRefused, match="can not be"):
            await acancel(pg, "a\0b")
        await asubmit(
            pg, {"messages": [HumanMessage("\\u0000", id=r"\\\u0000")]}, "t", queue="q" * 40
        )

        assert str(refused.value).isprintable()
        assert await jobs_on(pg) == [("daruma.carry_out", "todo")]


@pytest.mark.parametrize("said", ["Other", "Do it"])
async def test_a_queued_request_is_not_replaced_by_one_of_its_id(
    postgres_url: str, said: str
) -> None:
    """DU-07: another one is refused, none is lost; the same one again, of a retry, is run once."""
    async with aopen_postgres(postgres_url) as pg:
        await asubmit(pg, {"messages": [HumanMessage("Do it", id="m")], "mode": "react"}, "t")
        refused = pytest.raises(RequestRefused, match="the id 'm' waits")
        with refused if said == "Other" else nullcontext():
            await asubmit(pg, {"messages": [HumanMessage(said, id="m")], "mode": "react"}, "t")
        graph = graph_on(pg)
        await awork(graph, wait=False)

        assert await said_on(graph) == ["Do it", "First."]


async def test_a_reply_that_can_not_be_queued_answers_nothing(postgres_url: str) -> None:
    """DU-02: it is not on record, and the question is open for the right one."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await graph.ainvoke(PLANNED, THREAD)
        (question,) = await pg.ainbox()
        for reply in ({"decision": "reject", "feedback": "a\0b"}, {"decision": "confirm"}):
            wrong = pytest.raises(RequestRefused, match="NUL")
            with wrong if "feedback" in reply else nullcontext():
                await asubmit(pg, Command(resume={question.interrupt_id: reply}), "t")
        await awork(graph, wait=False)

        assert (await stood(graph)).values["result"].completed


@pytest.mark.long
async def test_a_question_is_answered_through_the_queue(postgres_url: str) -> None:
    """The job is done when the question is open; a reply that does not fit is refused."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, PLANNED, "t")
        await awork(graph, wait=False)
        (question,) = (await stood(graph)).interrupts

        with pytest.raises(ReplyRefused):
            await asubmit(pg, Command(resume={question.id: {"decision": "maybe"}}), "t")
        with pytest.raises(RequestRefused, match="waits for an answer"):
            await asubmit(pg, ASKED, "t")
        await asubmit(pg, Command(resume={question.id: {"decision": "confirm"}}), "t")
        await awork(graph, wait=False)

        assert (await stood(graph)).values["result"].completed


@pytest.mark.parametrize("by_queue", [True, False])
async def test_requests_behind_a_question_wait_for_its_answer(
    postgres_url: str, by_queue: bool
) -> None:
    """DU-07: they stay in the queue in their order, out of the answer's way; followers hear so."""
    behind = [{"messages": [("user", text)], "mode": "direct_chat"} for text in ("One", "Two", "3")]
    script = SCRIPT | {"main": [say(f"{number}.") for number in range(4)]}
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, script)
        events = await graph.afollow(THREAD)
        for asked in (PLANNED, *behind[:2]):
            await asubmit(pg, asked, "t")
        pace = replace(QUICK, first_wait=30.0)  # no attempt holds the thread while it is looked at
        async with at_work(graph, pace) as lines, asyncio.timeout(60):
            stops = [each.event async for each in events if each.type == "run_stopped"]
            look = await graph.alook(THREAD)
            with pytest.raises(RequestRefused, match="waits for an answer"):
                await asubmit(pg, behind[2], "t")
            (question,) = (await stood(graph)).interrupts
            answer: Any = Command(resume={question.id: {"decision": "confirm"}})
            if by_queue:
                await asubmit(pg, answer, "t")
            else:
                await graph.ainvoke(answer, THREAD)
                await asubmit(pg, behind[2], "t")
            for _ in range(3):
                await lines.until("'t': completed")

        said = await said_on(graph)
        assert await jobs_on(pg) == [("daruma.park", "todo")]

    assert [stop["outcome"] for stop in stops] == ["waiting"] * 3
    assert [bool(stop["error"]) for stop in stops] == [False, True, True]
    assert stops[1]["error"].startswith("the request waits in the queue: thread 't' waits for")
    assert (look.status, len(look.questions)) == ("waiting", 1)
    names = ["One", "Two"] if by_queue else ["One", "Two", "3"]
    assert [text for text in said if text in ("One", "Two", "3")] == names


async def test_a_request_behind_unfinished_work_waits_until_that_is_resumed(
    postgres_url: str,
) -> None:
    """Its thread was left by a bug: going on is not behind it."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, [{"raise": "down"}], fallback_chain={"enabled": False})
        await asubmit(pg, ASKED, "t")
        await asubmit(pg, {"messages": [("user", "One")], "mode": "direct_chat"}, "t")
        await awork(graph, wait=False)
        told = (await standings(pg.checkpointer.database))["t"]

        await asubmit(pg, None, "t")
        graph = graph_on(pg)
        await awork(graph, wait=False)

        assert told.what == "failed"
        assert await said_on(graph) == ["Do it", "First.", "One", "Second."]


@pytest.mark.long
async def test_a_thread_that_somebody_runs_is_put_off(postgres_url: str) -> None:
    """It waits its turn, and is run then: no attempt is lost."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, ASKED, "t")
        async with at_work(graph) as lines:
            async with athread_held(graph.checkpointer, "t"):
                busy = [await lines.until("put off") for _ in range(2)]
            await lines.until("'t': completed")

        assert "is being run by process" in busy[0]
        assert await jobs_on(pg) == []


async def test_two_threads_in_one_workspace_take_turns(postgres_url: str, tmp_path: Path) -> None:
    """One of them finds the folder taken, and comes back."""
    gate, inside = asyncio.Event(), asyncio.Event()

    async def shout(text: str) -> str:
        """Say it loudly."""
        inside.set()
        await gate.wait()
        return text

    asked = ASKED | {"workspace": str(tmp_path)}
    async with aopen_postgres(postgres_url) as pg:
        script = [calls("shout"), say()]
        graph = graph_on(pg, script, [shout], sandbox={"require": "none"})
        await asubmit(pg, asked, "one")
        async with at_work(graph) as lines:
            await inside.wait()
            await asubmit(pg, asked, "other")
            put_off = await lines.until("put off")
            gate.set()
            await lines.until("'one': completed")
            await lines.until("'other': completed")

    assert "another run on this machine works in" in put_off


async def test_what_was_asked_for_is_known_before_the_first_step(postgres_url: str) -> None:
    """A worker has just taken the thread: nothing of it is stored yet."""
    async with aopen_postgres(postgres_url) as pg:
        await asubmit(pg, ASKED, "t")
        async with athread_held(pg.checkpointer, "t"):
            told = (await standings(pg.checkpointer.database))["t"]

    assert (told.what, told.request) == ("running", ASKED["messages"][-1][1])


async def test_a_bug_is_a_failed_job_with_a_line(postgres_url: str) -> None:
    """Nobody tries it again by itself; the line stays with the thread, and so does the queue."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg, [{"raise": "down"}], fallback_chain={"enabled": False})
        await asubmit(pg, ASKED, "t")
        with WorkerLines.heard() as lines:
            await awork(graph, wait=False)

        told = (await standings(pg.checkpointer.database))["t"]
        assert (told.what, told.is_busy) == ("failed", False)
        told_of_it = [line for line in lines.lines if line.startswith("thread")]
        assert told_of_it == ["thread 't': taken up", told.error]
        assert "could not be run: ScriptedFault: down" in told.error
        assert await jobs_on(pg) == [("daruma.carry_out", "failed")]


async def test_a_task_that_fails_is_no_failed_job(postgres_url: str) -> None:
    """It is a thread that has ended."""
    async with aopen_postgres(postgres_url) as pg:
        retries = {"recovery": {"max_retries": 0, "wait_seconds": 0}}
        graph = graph_on(pg, [{"raise": "down"}] * 9, fallback_chain=retries)
        await asubmit(pg, ASKED, "t")

        await awork(graph, wait=False)

        assert (await stood(graph)).values["result"].status == "failed"
        assert await jobs_on(pg) == []


@pytest.mark.long
@pytest.mark.parametrize("wait", [True, False])
async def test_a_worker_that_is_stopped_gives_its_job_back(postgres_url: str, wait: bool) -> None:
    """What runs is cancelled after its grace; the next worker makes a repeatable call once more."""
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def shout(text: str) -> str:
        """Say it loudly."""
        inside.set()
        await go_on.wait()
        return text

    async with aopen_postgres(postgres_url) as pg:
        twice = {"daruma": {"idempotent": True}}
        tool = StructuredTool.from_function(coroutine=shout, metadata=twice)
        graph = graph_on(pg, [calls("shout"), say()], [tool])
        await asubmit(pg, ASKED, "t")
        async with at_work(graph, Pace(grace=0.0), wait=wait):
            await inside.wait()
        left = await jobs_on(pg)
        go_on.set()
        await awork(graph, wait=False)

        assert left == [("daruma.carry_out", "todo")]
        assert len(await said_on(graph)) == 4


async def test_who_finds_nothing_more_to_do_lets_the_others_end(postgres_url: str) -> None:
    """DU-07: with ``wait`` off, however long they take."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, ASKED, "t")

        await awork(graph, concurrency=3, wait=False, pace=Pace(grace=0.0))

        assert (await stood(graph)).values["result"].status == "completed"


async def test_a_worker_says_what_it_does(postgres_url: str) -> None:
    """DU-07: also that it takes up what another one, that is gone, had begun."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, ASKED, "t")
        async with pg.pool.connection() as connection:  # begun by one of whom nothing is known
            await connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")

        with WorkerLines.heard() as lines:
            await awork(graph, wait=False, concurrency=2, pace=QUICK)

    gone, ready, *thread = [each for each in lines.lines if not each.startswith("task")]
    assert gone == "thread 't': its worker is gone; it is queued again"
    assert ready.startswith("ready, on Postgres at postgresql://")
    assert ready.endswith(": 2 at once")
    assert thread == ["thread 't': taken up", "thread 't': completed, not checked"]


@pytest.mark.long
async def test_a_worker_waits_for_a_database_that_is_lost(
    postgres_url: str, postgres_server: str
) -> None:
    """DU-04, DU-07: it takes up jobs again as soon as there is one."""
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        pace = Pace(heartbeat=0.1, poll=0.1, connect=0.3, first_wait=0.1)
        await asubmit(pg, ASKED, "before")
        async with at_work(graph, pace) as lines:
            await lines.until("'before': completed")
            with psycopg.connect(postgres_server, autocommit=True) as admin:
                admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                admin.execute(kill, [name])
                await lines.until("the database was lost")
                admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            async with aopen_postgres(postgres_url) as other:
                await asubmit(other, ASKED, "after")
                await lines.until("'after': completed")


@pytest.mark.long
@pytest.mark.parametrize("moment", ["as it is lost", "while it is looked for"])
async def test_a_worker_ends_while_the_database_is_lost(postgres_url: str, moment: str) -> None:
    """DU-07: being asked once is enough, whatever it was doing about the outage."""
    pace = Pace(heartbeat=0.1, poll=0.1, connect=0.3, first_wait=0.1)
    with fault_proxy(postgres_url) as proxy:
        async with aopen_postgres(proxy.url, outage_seconds=0) as pg:
            graph = graph_on(pg)
            await asubmit(pg, ASKED, "t")
            with WorkerLines.heard() as lines:
                worker = asyncio.create_task(awork(graph, pace=pace))
                await lines.until("'t': completed")
                proxy.refuse()
                if moment == "while it is looked for":
                    await lines.until("the database was lost")
                    proxy.faulted.clear()
                    await asyncio.to_thread(proxy.faulted.wait)
                worker.cancel()
                ended, _ = await asyncio.wait([worker], timeout=10)

    assert ended
    assert worker.cancelled()


@pytest.mark.long
async def test_a_worker_begins_once_the_database_is_there(postgres_url: str) -> None:
    """DU-04: it waits for one; where it is not to wait, it says so in one line."""
    pace = Pace(heartbeat=0.1, poll=0.1, connect=0.3, first_wait=0.1)
    with fault_proxy(postgres_url) as proxy:
        async with aopen_postgres(proxy.url, outage_seconds=0) as pg:
            graph = graph_on(pg)
            await asubmit(pg, ASKED, "t")
            proxy.refuse()
            with pytest.raises(StorageUnavailable, match="lost"):
                await awork(graph, wait=False, pace=pace)
            async with at_work(graph, pace) as lines:
                await lines.until("the database is lost")
                proxy.mend()
                await lines.until("'t': completed")


@pytest.mark.long
async def test_workers_of_one_process_share_their_connections(
    postgres_url: str, postgres_server: str
) -> None:
    """DU-07: each worker adds the one that it listens on, and no more."""
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        workers = [asyncio.create_task(awork(graph, pace=QUICK)) for _ in range(6)]
        with WorkerLines.heard() as lines, psycopg.connect(postgres_server) as admin:
            for number in range(12):
                await asubmit(pg, ASKED, f"t{number}")
            for _ in range(12):
                await lines.until(": completed")
            row = admin.execute(count, [name]).fetchone()
        for each in workers:
            each.cancel()
        await asyncio.wait(workers)

    assert row is not None
    assert row[0] <= 10 + 3 + len(workers)


async def test_workers_begun_at_once_each_serve_their_queue(postgres_url: str) -> None:
    """DU-07: they wait for the connections that they share beside each other."""
    async with aopen_postgres(postgres_url) as pg:
        graph, queues = graph_on(pg), [f"q{number}" for number in range(4)]
        for name in queues:
            await asubmit(pg, ASKED, name, queue=name)

        await asyncio.gather(*(awork(graph, wait=False, queue=name) for name in queues))

        ended = [(await stood(graph, name)).values["result"].status for name in queues]
        assert ended == ["completed"] * 4


def test_a_graph_without_postgres_has_no_worker() -> None:
    """One line says what to do."""
    with pytest.raises(NotShared, match="persistence=pg"):
        work(build_graph(ScriptedChatModel(script=SCRIPT), settings=settings()), wait=False)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "procrastinate")
