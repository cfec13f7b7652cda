"""The queue in Postgres: its tables, its jobs, jobs that come back into it; and what a worker can
do, as tasks of procrastinate.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from procrastinate import BaseRetryStrategy, Blueprint, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import (
    AlreadyEnqueued,
    ConnectorException,
    JobAborted,
    UniqueViolation,
)
from procrastinate.job_context import AbortReason
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.schema import SchemaManager
from psycopg import OperationalError
from psycopg.errors import RaiseException
from psycopg.types.json import Jsonb
from typing_extensions import override

from daruma.graph.follow import stop_of
from daruma.graph.learning import NotSampled, NotTaken
from daruma.graph.learning_jobs import SECONDS, evolution_loop, within
from daruma.graph.notify import notify
from daruma.graph.requests import NotNow
from daruma.graph.run import Machine
from daruma.graph.standing import CARRY_OUT, EVOLVE, IS_THERE, PARK
from daruma.graph.storage import Connection, Database, EventLog, ProcessLife, workspace_of
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
from daruma.state.errors import Busy, DarumaError, HoldLost, StorageUnavailable
from daruma.state.events import RunStopped
from daruma.state.lessons import Experience
from daruma.tools.evolution import Learning, experience_in, key_of, learn, put_experience, shelf

# --- Procrastinate's own tables, made beside ours when something is queued for the first time.


async def make_queue(database: Database) -> None:
    """Make the tables, one process after the other; in the schema that the connections work in."""

    async def make(connection: Connection) -> None:
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.queue'))")
        row = await (await connection.execute(IS_THERE)).fetchone()
        if not (row and row["there"]):
            await connection.execute(SchemaManager.get_schema())

    (found,) = await database.statement(IS_THERE, {})
    if not found["there"]:
        await database.transact(make)


# --- Putting jobs into the queue: of one thread they run one after the other, in their order.

_BEHIND: Final = -1
"""The priority of a request whose thread waits for a person: it is not in the answer's way."""

_LAST: Final = -2
"""The priority of timed jobs, which are in no other's way while they wait for their time, and of
learning from what has ended: what has not ended comes first.
"""

_WAITS: Final = "UPDATE procrastinate_jobs SET priority = %s WHERE id = %s"
_WAITS_NO_MORE: Final = """
UPDATE procrastinate_jobs SET priority = 0, scheduled_at = NULL
WHERE task_name = %s AND lock = %s AND status = 'todo' AND priority < 0
"""

_OF_ITS_ID: Final = """
SELECT FROM procrastinate_jobs
WHERE task_name = %s AND lock = %s AND status IN ('todo', 'doing')
    AND args #>> '{submission,request,messages,-1,data,id}' = %s
    AND args #> '{submission,request,messages,-1}' <> %s
"""
"""Another request that its message would be taken for, once that one is in the history."""

_WAITING: Final = """
SELECT count(*) AS count FROM procrastinate_jobs
WHERE task_name = %(task)s AND queue_name = %(queue)s AND status = 'todo'
"""


async def queue(database: Database, submission: Submission, name: str) -> None:
    """Put a submission into the queue of that name; a second time changes nothing."""
    job = Job(
        queue=name,
        task_name=CARRY_OUT,
        lock=submission.thread_id,
        queueing_lock=f"{CARRY_OUT} {submission.name}",
        task_kwargs={"submission": submission.to_json()},
    )
    await _put(database, job)


async def park_at(database: Database, thread_id: str, deadline: float, name: str) -> None:
    """Have a thread's open review parked at its deadline, in Unix seconds; asked for once."""
    job = Job(
        queue=name,
        task_name=PARK,
        priority=_LAST,
        lock=thread_id,
        queueing_lock=f"{PARK} {thread_id} {deadline}",
        task_kwargs={"thread_id": thread_id},
        scheduled_at=datetime.fromtimestamp(deadline).astimezone(),
    )
    await _put(database, job)


async def evolve_later(
    database: Database, owner: str, key: str, name: str, kept: Mapping[str, Any], most: int
) -> bool:
    """Have a task on record learned from, asked for once; return whether that was queued.

    It is not where ``most`` wait already. Of one owner's, each is done after the other.
    """
    await make_queue(database)
    (waiting,) = await database.statement(_WAITING, {"task": EVOLVE, "queue": name})
    if waiting["count"] >= most:
        return False
    job = Job(
        queue=name,
        task_name=EVOLVE,
        priority=_LAST,
        lock=f"{EVOLVE} {owner}",
        queueing_lock=f"{EVOLVE} {owner} {key}",
        task_kwargs={"owner": owner, "key": key, "kept": dict(kept)},
    )
    await _put(database, job)
    return True


async def _put(database: Database, job: Job) -> None:
    async def put(connection: Connection) -> Any:
        told: Any = job.task_kwargs.get("submission", ())
        if "request" in told:  # behind those that wait, not before
            await connection.execute(_WAITS_NO_MORE, [CARRY_OUT, job.lock])
            last = told["request"]["messages"][-1]
            known = [CARRY_OUT, job.lock, id_ := last["data"]["id"], Jsonb(last)]
            if (await connection.execute(_OF_ITS_ID, known)).rowcount:
                raise NotNow(f"another message with the id {id_!r} waits in the queue already")
        try:
            return await JobManager(PsycopgConnector()).defer_job_async(job, connection=connection)
        except ConnectorException as error:  # a lost database is told by what Postgres itself says
            raise error.__cause__ or error from None

    await make_queue(database)
    try:
        await database.transact(put)
    except AlreadyEnqueued:
        return


# --- Cancelling what was submitted for a thread.

_OF_A_THREAD: Final = """
SELECT id FROM procrastinate_jobs
WHERE task_name = %s AND lock = %s AND status IN ('todo', 'doing') ORDER BY id DESC
"""


async def cancel_jobs(database: Database, thread_id: str) -> bool:
    """Take a thread's jobs out of the queue, and have the one that runs ended; return if any was.

    The newest goes first, so that none begins meanwhile.
    """
    await make_queue(database)

    async def cancel(connection: Connection) -> bool:
        jobs = JobManager(PsycopgConnector())
        found = await (await connection.execute(_OF_A_THREAD, [CARRY_OUT, thread_id])).fetchall()
        done = [
            await jobs.cancel_job_by_id_async(row["id"], abort=True, connection=connection)
            for row in found
        ]
        return any(done)

    return await database.transact(cancel)


# --- When a job that could not be done comes back into the queue, and when it has failed.

_LATER: Final = (Busy, HoldLost, StorageUnavailable, OperationalError)
"""What says nothing of the job itself: somebody else is at work, or the database is lost."""

_LONGEST: Final = 30.0
"""Seconds between two tries; as long as a lease that nobody keeps alive."""


def is_later(error: BaseException) -> bool:
    """Tell whether a job that ended so is to be tried again."""
    return isinstance(error, (*_LATER, asyncio.CancelledError))


class PuttingOff(BaseRetryStrategy):
    """Puts a job off as often as it takes, each time for twice as long, from ``first`` seconds on.

    One that was cancelled, as its worker is stopped, can be taken up at once.
    """

    def __init__(self, first: float = 1.0) -> None:
        self._first = first

    @override
    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if not is_later(exception):
            return None
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision()
        wait = min(_LONGEST, self._first * 2 ** min(job.attempts, 10))
        return RetryDecision(retry_in={"milliseconds": round(wait * 1000)})


# --- Taking up the jobs of workers that have died, as procrastinate advises to.

_KEPT_HOURS: Final = 7 * 24
"""How long jobs that failed are kept, to be looked at."""


_HELD: Final = """
SELECT job.id, held.holder FROM procrastinate_jobs AS job
JOIN daruma_leases AS held ON held.thread_id = job.lock AND held.holder <> ''
WHERE job.status = 'doing' AND job.queue_name = %(queue)s AND held.taken_at > (
    SELECT max(at) FROM procrastinate_events AS each
    WHERE each.job_id = job.id AND each.type = 'started'
)
"""
"""Jobs whose thread was taken since they were begun, and by whom."""


async def rescue(jobs: JobManager, queue: str, stalled: float) -> None:
    """Queue again what workers had begun that showed no sign of life for ``stalled`` seconds.

    One that was only slow finds its thread taken, or its work done. A process of this host that
    held its job's thread and has surely ended is not waited for. What failed long ago goes.
    """
    for job in await jobs.get_stalled_jobs(queue=queue, seconds_since_heartbeat=stalled):
        await _queued_again(jobs, job)
    rows = await jobs.connector.execute_query_all_async(_HELD, queue=queue)
    lives = {row["id"]: ProcessLife.of(row["holder"]) for row in rows}
    dead = {id_ for id_, life in lives.items() if life and life.is_over}
    for job in await jobs.get_stalled_jobs(queue=queue, seconds_since_heartbeat=0) if dead else ():
        if job.id in dead:
            await _queued_again(jobs, job)
    await jobs.delete_old_jobs(
        nb_hours=_KEPT_HOURS,
        queue=queue,
        include_failed=True,
        include_cancelled=True,
        include_aborted=True,
    )


async def _queued_again(jobs: JobManager, job: Job) -> None:
    if job.task_name == CARRY_OUT:
        LOG.warning(f"thread {job.lock!r}: its worker is gone; it is queued again")
    try:
        try:
            if job.abort_requested:  # its worker died before it could end it
                await jobs.finish_job(job, Status.ABORTED, delete_job=True)
            else:
                await jobs.retry_job(job)
        except UniqueViolation:  # the same waits in the queue already, behind this one's lock
            await jobs.finish_job(job, Status.ABORTED, delete_job=True)
    except ConnectorException as error:
        if not isinstance(error.__cause__, RaiseException):
            raise  # else it has ended meanwhile, or another worker was first to queue it


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
UPDATE procrastinate_jobs SET args = args || jsonb_build_object(
    'error', %(error)s::text,
    'left_at', (SELECT coalesce(max(checkpoint_id), '') FROM daruma_checkpoints
        WHERE thread_id = lock AND checkpoint_ns = '')
) WHERE id = %(id)s
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
                await self.database.statement(_WAITS_NO_MORE, [CARRY_OUT, thread])
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
            elif isinstance(error, NotNow) and asked:  # it waits behind the answer (DU-07)
                if context.job.priority != _BEHIND:
                    LOG.info(f"thread {thread!r}: put off: {why}")
                    await self.database.statement(_WAITS, [_BEHIND, context.job.id])
                    stop = stop_of(await self.reader.aget_state(config), run=given.name)
                    stop = replace(stop, error=f"the request waits in the queue: {why}")
                    await self._log.write(thread, "", [stop.to_dict()])  # its own is to come
                raise Busy(why) from error
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
