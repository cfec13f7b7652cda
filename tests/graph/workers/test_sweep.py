"""Reviews whose deadline has passed are parked once, by whoever comes along first (PL-03)."""

import asyncio
import json
import sys
import time
from subprocess import PIPE, Popen
from typing import Any

import psycopg
from langgraph.types import Command
from tests.parts import settings
from tests.scripted_runs import phases, say
from tests.worker_kill import QUICK
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.graph.storage.postgres import Postgres, aopen_postgres, open_postgres
from daruma.graph.workers.execution import asweep, park
from daruma.graph.workers.work import asubmit, awork, work

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


def test_a_worker_parks_what_was_begun_elsewhere(postgres_url: str) -> None:
    """A run by hand left no timed job: workers look for such reviews when they begin."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg, timeout=0.001)
        graph.invoke(PLANNED, config("t"))

        work(graph, wait=False)

        assert graph.get_state(config("t")).values["result"].status == "parked"
