"""Ended tasks that one worker carried out are learned from by any, and once (EV-01)."""

from typing import Any

from tests.parts import settings
from tests.scripted_runs import say
from tests.worker_kill import QUICK
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.compiled import Machine
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import Postgres, aopen_postgres
from daruma.graph.workers.evolving import by_jobs, evolve
from daruma.graph.workers.standing import standings
from daruma.graph.workers.submit import asubmit
from daruma.graph.workers.work import awork

ASKED: Any = {"messages": [("user", "Do it")], "mode": "react"}
ROOT = ("daruma", "evolution")
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def graph_on(pg: Postgres, **evolution: Any) -> Machine:
    given = settings(evolution={"success_sample_rate": 1.0, **evolution})
    script = [say("First."), say("Second."), say("Third.")]
    return build_graph(ScriptedChatModel(script=script), (), given, persistence=pg)


async def jobs_on(pg: Postgres) -> list[Any]:
    """What waits to be learned from, by the arguments of its job."""
    async with pg.pool.connection() as connection:
        found = await connection.execute(
            "SELECT args, priority, lock FROM procrastinate_jobs WHERE task_name = 'daruma.evolve'"
        )
        return await found.fetchall()


async def kept_on(pg: Postgres) -> list[Any]:
    return [item.value["task_id"] for item in await pg.store.asearch(ROOT, limit=100)]


async def test_a_worker_learns_from_what_it_carried_out(postgres_url: str) -> None:
    """As a job of its own, which it says a line of; nothing is left in the queue."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await asubmit(pg, ASKED, "t")

        with WorkerLines.heard() as lines:
            await awork(graph, wait=False, pace=QUICK)

        assert "task 't/1': learned from" in "\n".join(lines.lines)
        assert (await kept_on(pg), await jobs_on(pg)) == (["t/1"], [])


async def test_the_job_names_a_task_and_holds_nothing_of_it(postgres_url: str) -> None:
    """What it was about is kept in the store, where it is sealed; threads' jobs come first."""
    async with aopen_postgres(postgres_url) as pg:
        graph = by_jobs(graph_on(pg), pg.checkpointer.database, "daruma", {"daruma_model": "m"})

        await graph.ainvoke(ASKED, CONFIG)
        assert await graph.evolution.adrain()

        (job,) = await jobs_on(pg)
        assert sorted(job["args"]) == ["kept", "key", "owner"]
        assert job["priority"] < 0
        assert job["lock"] == "daruma.evolve default"
        assert await kept_on(pg) == ["t/1"]


async def test_what_is_to_be_learned_from_is_no_thread_s_job(postgres_url: str) -> None:
    """DU-07: whoever lists threads is shown what goes on with threads."""
    async with aopen_postgres(postgres_url) as pg:
        graph = by_jobs(graph_on(pg), pg.checkpointer.database, "daruma", {})

        await graph.ainvoke(ASKED, CONFIG)
        assert await graph.evolution.adrain()

        assert len(await jobs_on(pg)) == 1
        assert await standings(pg.checkpointer.database) == {}


async def test_of_too_many_that_wait_the_rest_is_dropped(postgres_url: str) -> None:
    """EV-02: and counted; it stays on record."""
    async with aopen_postgres(postgres_url) as pg:
        graph = by_jobs(graph_on(pg), pg.checkpointer.database, "daruma", {}, most=2)

        for number in range(3):
            config: Any = {"configurable": {"thread_id": f"t{number}"}}
            await graph.ainvoke(ASKED, config)
        assert await graph.evolution.adrain()

        counts = graph.evolution.counts
        assert (counts.accepted, counts.learned, counts.dropped) == (3, 2, 1)
        assert (len(await jobs_on(pg)), len(await kept_on(pg))) == (2, 3)


async def test_learning_twice_changes_nothing(postgres_url: str) -> None:
    """Nobody can tell how far a worker came that has died."""
    async with aopen_postgres(postgres_url) as pg:
        graph = by_jobs(graph_on(pg), pg.checkpointer.database, "daruma", {})
        await graph.ainvoke(ASKED, CONFIG)
        assert await graph.evolution.adrain()
        (job,) = await jobs_on(pg)
        named = (job["args"]["owner"], job["args"]["key"])

        first = await evolve(graph, *named)
        once = [item.value for item in await pg.store.asearch(ROOT, limit=100)]
        second = await evolve(graph, *named)

        assert first == second
        assert [item.value for item in await pg.store.asearch(ROOT, limit=100)] == once


async def test_what_is_on_record_no_more_is_nothing_to_learn_from(postgres_url: str) -> None:
    """Nor is what another version has kept in another form."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await pg.store.aput((*ROOT, "default", "experiences"), "odd", {"goal": 7})

        assert await evolve(graph, "default", "none") is None
        assert await evolve(graph, "default", "odd") is None
