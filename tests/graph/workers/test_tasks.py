"""Ended tasks that one worker carried out are learned from by any, and once (EV-01)."""

import asyncio
from dataclasses import replace
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from tests.parts import settings
from tests.scripted_runs import calls, say
from tests.worker_kill import QUICK
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.learning import Counts
from daruma.graph.models import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.graph.standing import standings
from daruma.graph.storage import Postgres, aopen_postgres
from daruma.graph.workers import asubmit, awork
from daruma.graph.workers._execution import Submission, carry_out
from daruma.graph.workers._queue import by_jobs, evolve

ASKED: Any = {"messages": [("user", "Do it")], "mode": "react"}
ROOT = ("daruma", "evolution")
KEPT = (*ROOT, "default", "experiences")
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


async def all_on(pg: Postgres) -> list[str]:
    return sorted(repr(item.value) for item in await pg.store.asearch(ROOT, limit=100))


async def kept_on(pg: Postgres) -> list[Any]:
    return [item.value["task_id"] for item in await pg.store.asearch(KEPT, limit=100)]


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
            assert await graph.evolution.adrain()  # one at a time: the queue is counted, not locked

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
        once = await all_on(pg)
        second = await evolve(graph, *named)

        assert first is not None
        assert replace(first, reflected=True) == second
        assert await all_on(pg) == once


async def test_what_is_on_record_no_more_is_nothing_to_learn_from(postgres_url: str) -> None:
    """Nor is what another version has kept in another form."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        await pg.store.aput((*ROOT, "default", "experiences"), "odd", {"goal": 7})

        assert await evolve(graph, "default", "none") is None
        assert await evolve(graph, "default", "odd") is None


async def test_what_a_dead_worker_ended_is_learned_from_all_the_same(postgres_url: str) -> None:
    """Its job comes again, there is nothing to do, and what it had not come to is done."""
    async with aopen_postgres(postgres_url) as pg:
        asked = {"messages": [HumanMessage("Do it", id="m")], "mode": "react"}
        submission = Submission("t", asked)
        await carry_out(graph_on(pg, enabled=False), submission)
        other = graph_on(pg)

        await carry_out(other, submission)

        assert await other.evolution.adrain()
        assert await kept_on(pg) == ["t/1"]


async def test_a_job_that_a_dead_worker_had_begun_is_another_s(postgres_url: str) -> None:
    """As any job of the queue."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        queued = by_jobs(graph, pg.checkpointer.database, "daruma", {})
        await queued.ainvoke(ASKED, CONFIG)
        assert await queued.evolution.adrain()
        async with pg.pool.connection() as connection:  # begun by one of whom nothing is known
            await connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")

        with WorkerLines.heard() as lines:
            await awork(graph, wait=False, pace=QUICK)

        assert "task 't/1': learned from" in lines.lines
        assert await jobs_on(pg) == []


async def test_what_goes_back_into_the_queue_has_not_ended(postgres_url: str) -> None:
    """A worker that is stopped breaks nothing off: another one goes on with it."""
    reached = asyncio.Event()

    async def hang(text: str) -> str:
        """Take for ever."""
        reached.set()
        await asyncio.Event().wait()
        return text

    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script=[calls("hang")])
        own = build_graph(model, [hang], settings(), persistence=pg)
        graph = by_jobs(own, pg.checkpointer.database, "daruma", {})
        running = asyncio.create_task(graph.ainvoke(ASKED, CONFIG))
        await reached.wait()

        running.cancel()
        await asyncio.wait([running])

        assert await graph.evolution.adrain()
        assert graph.evolution.counts == Counts(accepted=1, skipped=1)
        assert await kept_on(pg) == []


async def test_a_store_of_one_s_own_is_learned_into_at_once(postgres_url: str) -> None:
    """No other worker has it."""
    async with aopen_postgres(postgres_url) as pg:
        graph = graph_on(pg).copy({"store": InMemoryStore()})

        assert by_jobs(graph, pg.checkpointer.database, "daruma", {}) is graph
