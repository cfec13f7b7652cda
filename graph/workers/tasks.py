"""What a worker can do, as tasks of procrastinate: carry out, park, and look after the queue."""

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.compiled import Machine
from daruma.graph.held import workspace_of
from daruma.graph.stopping import stop_of
from daruma.graph.storage.database import Database
from daruma.graph.storage.event_log import EventLog
from daruma.graph.workers.announcing import Announcing
from daruma.graph.workers.carrying_out import carry_out
from daruma.graph.workers.engine import Blueprint, JobContext
from daruma.graph.workers.evolving import by_jobs, evolve
from daruma.graph.workers.jobs import park_at
from daruma.graph.workers.pace import Pace
from daruma.graph.workers.putting_off import PuttingOff, is_later
from daruma.graph.workers.rescue import rescue
from daruma.graph.workers.shared import log_of
from daruma.graph.workers.submission import Submission
from daruma.graph.workers.sweep import GraphOf, deadline_of, park_overdue, swept
from daruma.graph.workers.task_names import CARRY_OUT, EVOLVE, PARK
from daruma.graph.workers.telling import (
    ended,
    failed,
    learned_from,
    not_learned,
    parked,
    put_off,
)
from daruma.state.errors import DarumaError
from daruma.state.events import RunStopped

LOG: Final = logging.getLogger("daruma.worker")

_FAILED: Final = """
UPDATE procrastinate_jobs SET args = args || jsonb_build_object('error', %(error)s::text)
WHERE id = %(id)s
"""


@dataclass(frozen=True)
class Tasks:
    """The tasks on one queue. ``graph_of`` makes a thread's graph, ``reader`` only looks at it.

    ``learner_of`` makes one that learns from ended tasks, where that takes less.
    """

    database: Database
    graph_of: GraphOf
    reader: Machine
    queue: str
    pace: Pace = field(default_factory=Pace)
    learner_of: GraphOf | None = None

    def declare(self, tasks: Blueprint) -> None:
        """Declare them to procrastinate."""
        named: Any = {"queue": self.queue, "retry": PuttingOff(self.pace.first_wait)}
        task: Any = tasks.task
        task(name=CARRY_OUT, pass_context=True, **named)(self.carry_out)
        task(name=PARK, **named)(self.park)
        task(name=EVOLVE, **named)(self.evolve)
        for name, cron, work in (
            ("daruma.rescue", self.pace.rescue, self.rescue),
            ("daruma.sweep", self.pace.sweep, self.sweep),
        ):
            own = {"queueing_lock": f"{name} {self.queue}", "priority": 1}
            declared = task(name=name, pass_context=True, **own, **named)(work)
            tasks.periodic(cron=cron, periodic_id=self.queue)(declared)

    async def carry_out(self, context: JobContext, *, submission: dict[str, Any], **_: Any) -> None:
        """Carry out what was submitted, and see to it that a review is parked in time."""
        given = Submission.of(submission)
        try:
            graph = await self._graph(given)
            graph = by_jobs(graph, self.database, self.queue, given.kept)
            snapshot = await self._announced(graph, given)
        except BaseException as error:
            if is_later(error):
                LOG.info(put_off(given.thread_id, error))
            else:
                await _tell_failed(context, given.thread_id, error)
                await self._tell_stop(given, failed(given.thread_id, error))
            raise
        if (deadline := deadline_of(snapshot)) is not None:
            await park_at(self.database, given.thread_id, deadline, self.queue)
        LOG.info(ended(given.thread_id, snapshot))

    async def _announced(self, graph: Machine, given: Submission) -> StateSnapshot:
        async with Announcing.of(self._log, given.thread_id, given.name) as announcing:
            snapshot = await carry_out(graph, given, announcing.tell)
            announcing.tell(stop_of(snapshot, run=given.name).to_dict())
            return snapshot

    async def _tell_stop(self, given: Submission, error: str) -> None:
        stop = RunStopped(outcome="failed", error=error, run=given.name)
        await self._log.write(given.thread_id, given.name, [stop.to_dict()])

    @property
    def _log(self) -> EventLog:
        return log_of(self.reader)

    async def _graph(self, given: Submission) -> Machine:
        config = RunnableConfig(configurable={"thread_id": given.thread_id})
        snapshot = await self.reader.aget_state(config)
        asked = given.given if given.message_id else None
        return await self.graph_of(given.kept, workspace_of(asked, snapshot))

    async def park(self, *, thread_id: str) -> None:
        """Park a review whose time has come, if nobody answered it."""
        if await park_overdue(thread_id, self.reader, self.graph_of):
            LOG.info(parked(thread_id))

    async def evolve(self, *, owner: str, key: str, kept: dict[str, Any]) -> None:
        """Learn from a task that has ended. What goes wrong is said; it is no thread's failure."""
        try:
            learned = await evolve(await self._learner(kept), owner, key)
        except Exception as error:
            if is_later(error):
                raise
            LOG.warning(not_learned(owner, error))
        else:
            if learned:
                LOG.info(learned_from(learned.task_id))

    async def _learner(self, kept: dict[str, Any]) -> Machine:
        try:
            return await (self.learner_of or self.graph_of)(kept, None)
        except DarumaError:  # what is learned by rule needs neither its model nor its settings
            return self.reader

    async def rescue(self, context: JobContext, timestamp: int = 0) -> None:  # noqa: ARG002
        """Give others the jobs of workers that have died."""
        await rescue(context.app.job_manager, self.queue, self.pace.stalled)

    async def sweep(self, context: JobContext, timestamp: int = 0) -> None:  # noqa: ARG002
        """Park what is overdue, and forget what was told long ago."""
        await self.park_all()
        await self._log.forget()

    async def park_all(self) -> None:
        """Park what is overdue, whoever began it."""
        for thread_id in await swept(self.database, self.reader, self.graph_of):
            LOG.info(parked(thread_id))


async def _tell_failed(context: JobContext, thread_id: str, error: BaseException) -> None:
    text = failed(thread_id, error)
    LOG.error(text)
    values = {"error": text, "id": context.job.id}
    await context.app.connector.execute_query_async(_FAILED, **values)
