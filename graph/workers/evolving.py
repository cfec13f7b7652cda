"""Learning from ended tasks as jobs: what one worker carried out, any of them may learn from."""

from collections.abc import Mapping
from typing import Any, Final

from daruma.graph.bridge import on
from daruma.graph.compiled import Machine
from daruma.graph.evolving.job import within
from daruma.graph.evolving.jobs import SECONDS, evolution_loop
from daruma.graph.evolving.tally import NotSampled, NotTaken
from daruma.graph.storage.database import Database
from daruma.graph.workers.jobs import evolve_later
from daruma.state.lessons import Experience
from daruma.tools.evolution.learning import Learning, learn
from daruma.tools.evolution.shelf import experience_in, key_of, put_experience, shelf

MOST: Final = 1000
"""Ended tasks that may wait in one queue to be learned from."""


def by_jobs(
    graph: Machine, database: Database, queue: str, kept: Mapping[str, Any], most: int = MOST
) -> Machine:
    """Return a graph whose ended tasks are put on record, and learned from by any worker.

    ``kept`` says under which settings, as it does of a thread. A graph whose store no other worker
    has learns by itself.
    """
    if getattr(graph.store, "database", None) is not database:
        return graph

    async def put_off(experience: Experience, learning: Learning) -> None:
        if experience.status == "cancelled":  # its job goes back into the queue, and then on
            raise NotSampled
        await put_experience(experience, learning.store)
        key = key_of(experience)
        if not await evolve_later(database, experience.owner, key, queue, kept, most):
            raise NotTaken(f"{most:,} wait for a worker already")

    return graph.copy({"evolution": graph.evolution.by(put_off)})


async def evolve(graph: Machine, owner: str, key: str) -> Experience | None:
    """Learn from a task that is on record; return it, or None where it is there no more.

    It is done on the loop of evolution, so that it can hold up nothing else. Raises TimeoutError
    after a minute, and what the store raises.
    """
    store = graph.store
    found = await store.aget(shelf(owner, "experiences"), key) if store else None
    experience = experience_in(found)
    if store and experience:
        learning = Learning(store, graph.settings, graph.evolution.ask_under(graph.settings))
        await on(evolution_loop(), within(SECONDS, learn(experience, learning)))
    return experience
