"""What a worker can do, as tasks of procrastinate."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from procrastinate import Blueprint, JobContext
from procrastinate.exceptions import JobAborted
from procrastinate.job_context import AbortReason

from daruma.graph.follow import stop_of
from daruma.graph.learning import NotSampled, NotTaken
from daruma.graph.learning_jobs import SECONDS, evolution_loop, within
from daruma.graph.notify import notify
from daruma.graph.run import Machine
from daruma.graph.standing import CARRY_OUT, EVOLVE, PARK
from daruma.graph.storage import Database, EventLog, workspace_of
from daruma.graph.sync import on
from daruma.graph.workers._execution import (
    LOG,
    Announcing,
    GraphFactory,
    Pace,
    Submission,
    carry_out,
    deadline_of,
    ended,
    park_overdue,
    reason_of,
    shared_saver,
    swept,
)
from daruma.graph.workers._queue import PuttingOff, evolve_later, is_later, park_at, rescue
from daruma.state.errors import DarumaError
from daruma.state.events import RunStopped
from daruma.state.lessons import Experience
from daruma.tools.evolution import Learning, experience_in, key_of, learn, put_experience, shelf

# --- Learning from ended tasks as jobs: what one worker carried out, any of them may learn from.

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


# --- What a worker can do, as tasks of procrastinate: carry out, park, and look after the queue.

_PARKED: Final = "thread {!r}: parked, as nobody confirmed its plan in time"

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
    graph_of: GraphFactory
    reader: Machine
    queue: str
    pace: Pace = field(default_factory=Pace)
    learner_of: GraphFactory | None = None

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
        thread, asked = given.thread_id, given.given if given.message_id else None
        config = RunnableConfig(configurable={"thread_id": thread})
        LOG.info(f"thread {thread!r}: taken up")
        try:
            workspace = workspace_of(asked, await self.reader.aget_state(config))
            graph = await self.graph_of(given.kept, workspace)
            graph = by_jobs(graph, self.database, self.queue, given.kept)
            async with Announcing.of(self._log, thread, given.name) as announcing:
                snapshot = await carry_out(graph, given, announcing.tell)
                announcing.tell(stop_of(snapshot, run=given.name).to_dict())
        except BaseException as error:
            if context.abort_reason() is AbortReason.USER_REQUEST:
                LOG.info(f"thread {thread!r}: cancelled")
                stop = stop_of(await self.reader.aget_state(config), run=given.name)
                await self._log.write(thread, given.name, [stop.to_dict()])
                raise JobAborted from error
            why = reason_of(error)
            if is_later(error):
                LOG.info(f"thread {thread!r}: put off: {why or 'this worker is stopped'}")
            else:
                await self._tell_failed(context, given, f"{type(error).__name__}: {why}")
            raise
        if (deadline := deadline_of(snapshot)) is not None:
            await park_at(self.database, thread, deadline, self.queue)
        LOG.info(ended(thread, snapshot))

    async def _tell_failed(self, context: JobContext, given: Submission, why: str) -> None:
        text = f"thread {given.thread_id!r}: could not be run: {why}"
        LOG.error(text)
        values = {"error": text, "id": context.job.id}
        await context.app.connector.execute_query_async(_FAILED, **values)
        stop = RunStopped(outcome="failed", error=text, run=given.name)
        await self._log.write(given.thread_id, given.name, [stop.to_dict()])

    @property
    def _log(self) -> EventLog:
        return shared_saver(self.reader).events

    async def park(self, *, thread_id: str) -> None:
        """Park a review whose time has come, if nobody answered it."""
        if await park_overdue(thread_id, self.reader, self.graph_of):
            LOG.info(_PARKED.format(thread_id))

    async def evolve(self, *, owner: str, key: str, kept: dict[str, Any]) -> None:
        """Learn from a task that has ended. What goes wrong is said; it is no thread's failure."""
        graph = self.reader  # what is learned by rule needs neither a model nor settings
        try:
            with suppress(DarumaError):
                graph = await (self.learner_of or self.graph_of)(kept, None)
            learned = await evolve(graph, owner, key)
        except Exception as error:
            if is_later(error):
                raise
            why = f"{type(error).__name__}: {reason_of(error)}"
            LOG.warning(f"a task of {owner!r} could not be learned from: {why}")
        else:
            if learned:
                LOG.info(f"task {learned.task_id!r}: learned from")

    async def rescue(self, context: JobContext, timestamp: int = 0) -> None:  # noqa: ARG002
        """Give others the jobs of workers that have died."""
        await rescue(context.app.job_manager, self.queue, self.pace.stalled)

    async def sweep(self, context: JobContext, timestamp: int = 0) -> None:  # noqa: ARG002
        """Park what is overdue, tell of what waits, forget what was told long ago."""
        await self.park_all()
        notify(self.reader.checkpointer, self.reader.settings.notify)
        await self._log.forget()

    async def park_all(self) -> None:
        """Park what is overdue, whoever began it."""
        for thread_id in await swept(self.database, self.reader, self.graph_of):
            LOG.info(_PARKED.format(thread_id))
