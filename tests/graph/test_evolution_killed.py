"""A process that is killed while it learns loses what it had not learned, and nothing else."""

import subprocess
import sys
from typing import Any

from tests.evolution_stores import IllStore
from tests.parts import settings
from tests.scripted_runs import say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import open_postgres

CONFIG: Any = {"configurable": {"thread_id": "t"}}
ASKED: Any = {"messages": [("user", "Do it")], "mode": "react"}

DYING = """
import os, signal, sys
from tests.evolution_stores import IllStore
from tests.parts import settings
from tests.scripted_runs import say
from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import open_postgres
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


def test_a_thread_goes_on_after_its_process_was_killed_while_it_learned(postgres_url: str) -> None:
    """DU-01: the answer is there, and the next task is run and learned from."""
    ran = subprocess.run([sys.executable, "-c", DYING, postgres_url], check=False, timeout=60)

    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        before = graph.get_state(CONFIG).values["result"]
        after = graph.invoke(ASKED, CONFIG)["result"]
        assert graph.evolution.drain()
        place = ("daruma", "evolution", "default", "experiences")
        kept = [item.value["task_id"] for item in pg.store.search(place)]

    assert (ran.returncode, before.status) == (-9, "completed")
    assert (after.status, kept) == ("completed", [after.task_id])


def test_closing_storage_waits_for_what_is_learned_into_it(postgres_url: str) -> None:
    """EV-02: a script that ends with its answer has learned from it too."""
    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg)
        graph.invoke(ASKED, CONFIG)

    assert graph.evolution.counts.learned == 1


def test_closing_storage_waits_for_nothing_else(postgres_url: str) -> None:
    """What is learned into another store has its own end."""
    store = IllStore("hangs")

    with open_postgres(postgres_url) as pg:
        graph = graph_on(pg, store)
        graph.invoke(ASKED, CONFIG)
        assert store.asked.wait(20)

    assert graph.evolution.counts.failed == 0
    assert not graph.evolution.drain(0.0)
