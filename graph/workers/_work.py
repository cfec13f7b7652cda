"""Having a thread run by a worker, and working the queue off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from time import monotonic
from typing import Any, Final
from uuid import uuid4
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker
from psycopg import AsyncConnection, OperationalError
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from daruma.graph.learning_jobs import adrain_place
from daruma.graph.requests import (
    NoSuchThread,
    NotNow,
    RequestRefused,
    admit,
    answered_already,
    readdress_reply,
    refuse_unkept_id,
    refuse_unkept_metadata,
    request,
)
from daruma.graph.run import Machine
from daruma.graph.standing import CARRY_OUT, EVOLVE, standing_of
from daruma.graph.storage import Pool, Postgres, error_line
from daruma.graph.sync import Cancelled, run, run_interruptible
from daruma.graph.workers._execution import (
    LOG,
    Pace,
    Submission,
    always,
    reader_on,
    shared_saver,
)
from daruma.graph.workers._queue import Tasks, cancel_jobs, make_queue, rescue
from daruma.graph.workers._queue import queue as put
from daruma.state.errors import StorageUnavailable
from daruma.state.text import unstorable_part

# --- Having a thread run by a worker: checked here and now, carried out there and then.

QUEUE: Final = "daruma"
"""The queue of applications, whose workers are given the graph."""


def submit(
    postgres: Postgres,
    given: Any,
    thread_id: str | None = None,
    *,
    queue: str = QUEUE,
    metadata: Mapping[str, Any] | None = None,
    tokens: bool = False,
) -> str:
    """Queue what a graph could be invoked with, and return the thread's name: a new one for None.

    ``given`` is a request, ``Command(resume={id: reply})``, or None to go on. It is checked before
    it is queued, and a reply is on record then, the only one that counts; a worker on ``queue``
    carries it out, whatever becomes of this process. What is submitted for one thread is done in
    its order. ``metadata`` is kept with its checkpoints. With ``tokens``, who follows the thread
    meanwhile hears the words of models as they come (``model_text``).

    Raises :class:`~daruma.graph.requests.RequestRefused`,
    :class:`~daruma.state.interrupts.ReplyRefused` for an answer that does not fit its question, or
    comes second,
    :class:`~daruma.state.errors.StorageUnavailable` where nothing could be queued.
    """
    return run(asubmit(postgres, given, thread_id, queue=queue, metadata=metadata, tokens=tokens))


async def asubmit(
    postgres: Postgres,
    given: Any,
    thread_id: str | None = None,
    *,
    queue: str = QUEUE,
    metadata: Mapping[str, Any] | None = None,
    tokens: bool = False,
    name: str = "",
) -> str:
    """Do the same, asynchronously; by its ``name``, a new one, ``run_stopped`` tells of it."""
    _refuse_unkept_queue(queue)
    refuse_unkept_metadata(RunnableConfig(metadata=dict(metadata or {})))
    thread_id = str(thread_id or uuid4().hex)
    refuse_unkept_id({"thread_id": thread_id})
    checked = await _checked(postgres, given, thread_id)
    submission = Submission(thread_id, checked, metadata or {}, tokens, name or uuid4().hex)
    replies = submission.replies  # on record before they are queued: who comes second hears of it
    submission.to_json()  # what can not be queued is refused before anything is on record
    if replies and not await postgres.checkpointer.replies.accept(thread_id, replies):
        raise answered_already(replies, thread_id)
    await put(postgres.checkpointer.database, submission, queue)
    return thread_id


def cancel(postgres: Postgres, thread_id: str) -> None:
    """End what a worker does on a thread, and take what is queued for it out of the queue.

    It returns once that is asked for; the thread's followers hear ``run_stopped`` when it is done.
    The thread stays as a run that was cancelled leaves it, ``unfinished``: ``submit(pg, None,
    thread)`` goes on. A question stays open.

    Raises :class:`~daruma.graph.requests.NoSuchThread`, and
    :class:`~daruma.graph.requests.NotNow` where no worker is at work on it, or is to be.
    """
    run(acancel(postgres, thread_id))


async def acancel(postgres: Postgres, thread_id: str) -> None:
    """Do the same, asynchronously."""
    refuse_unkept_id({"thread_id": thread_id})
    saver = postgres.checkpointer
    if await cancel_jobs(saver.database, thread_id):
        return
    config = RunnableConfig(configurable={"thread_id": thread_id})
    if await standing_of(saver.database, thread_id):
        raise NotNow(f"thread {thread_id!r} is run by no worker: cancel it where it was started")
    if (await reader_on(postgres).aget_state(config)).created_at is None:
        raise NoSuchThread(f"there is no thread {thread_id!r}")
    raise NotNow(f"thread {thread_id!r} is not being run: there is nothing to cancel")


def _refuse_unkept_queue(name: str) -> None:
    if "\0" in name or unstorable_part(name) or len(name.encode()) > 40:  # a channel's has it, too
        raise RequestRefused(f"a queue can not be named {name[:100]!r}: take 40 letters at most")


async def _checked(postgres: Postgres, given: Any, thread_id: str) -> Any:
    snapshot = await reader_on(postgres).aget_state(
        RunnableConfig(configurable={"thread_id": thread_id})
    )
    if isinstance(given, Command):
        given = await readdress_reply(postgres.checkpointer, given, snapshot)
        return await admit(given, snapshot)
    if await standing_of(postgres.checkpointer.database, thread_id):
        # It waits for the thread's turn: how the thread stands then is not known yet.
        return given and request(given, known=snapshot.values.get("messages", ()))
    return await admit(given, snapshot)


# --- Working a queue off: any number of processes and machines may do so over one database.

_CONNECTIONS: Final = 3
_FIRST_PAUSE: Final = 0.25
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 30.0


def work(graph: Machine, *, concurrency: int = 1, wait: bool = True, queue: str = QUEUE) -> None:
    """Carry out what was submitted, with this graph, until Ctrl-C or SIGTERM.

    ``concurrency`` threads are run at once. With ``wait`` off, return once nothing is left that
    could be done now. Belongs on the main thread, where signals come in; elsewhere, use
    :func:`awork`.
    """
    with suppress(Cancelled):
        run_interruptible(awork(graph, concurrency=concurrency, wait=wait, queue=queue))


async def awork(
    graph: Machine,
    *,
    concurrency: int = 1,
    wait: bool = True,
    queue: str = QUEUE,
    pace: Pace | None = None,
) -> None:
    """Do the same on the running event loop, until it is cancelled.

    Then no more is begun; what runs has ``pace.grace`` seconds to end, and goes back into the queue
    where it has not. A database that is lost is waited for. Raises
    :class:`~daruma.state.errors.StorageUnavailable` where it is lost and ``wait`` is off.
    """
    _refuse_unkept_queue(queue)
    tasks = Tasks(shared_saver(graph).database, always(graph), graph, queue, pace or Pace())
    await serve(tasks, concurrency=concurrency, wait=wait)


async def serve(tasks: Tasks, *, concurrency: int, wait: bool) -> None:
    """Carry out what comes on the queue of these tasks."""
    async with AsyncExitStack() as stack:
        app = await _begun(tasks, stack, wait=wait)
        LOG.info(f"ready, on {tasks.database.patience.place}: {concurrency} at once")
        serving = _Serving(app, tasks, concurrency)
        await (serving.for_ever() if wait else serving.what_is_there())


_LOST: Final = (ConnectorException, PoolTimeout, OperationalError, StorageUnavailable)


async def _begun(tasks: Tasks, stack: AsyncExitStack, *, wait: bool) -> App:
    """Open the queue, again while the database is lost: for as long as a run waits, or for ever."""
    ends, pause = monotonic() + tasks.database.patience.seconds, _FIRST_PAUSE
    while True:
        try:
            async with AsyncExitStack() as own:
                app = await _opened(tasks, own)
                stack.push_async_exit(own.pop_all())
                return app
        except _LOST as error:
            why = error_line(error.__cause__ or error)
            if not wait and (isinstance(error, StorageUnavailable) or monotonic() + pause > ends):
                raise StorageUnavailable(f"the database is lost ({why})") from error
        LOG.warning(f"the database is lost ({why}): looking for it again in {pause:g} s")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


async def _opened(tasks: Tasks, stack: AsyncExitStack) -> App:
    await make_queue(tasks.database)
    app = App(connector=PsycopgConnector())
    tasks.declare(app)
    pool = await stack.enter_async_context(_shared_pool(tasks))
    await stack.enter_async_context(app.open_async(pool))
    await rescue(app.job_manager, tasks.queue, tasks.pace.stalled)
    await tasks.park_all()
    return app


_Shared = AsyncConnectionPool[AsyncConnection[Any]]
_pools: WeakKeyDictionary[Pool, dict[asyncio.AbstractEventLoop, tuple[_Shared, list[None]]]]
_pools = WeakKeyDictionary()


@asynccontextmanager
async def _shared_pool(tasks: Tasks) -> AsyncIterator[_Shared]:
    """Yield the connections for the queue that all workers over one database share (DU-07).

    Each loop has its own: connections live on one.
    """
    of_loops = _pools.setdefault(tasks.database.pool, {})
    loop = asyncio.get_running_loop()
    made: _Shared = AsyncConnectionPool(
        str(tasks.database.pool.conninfo),
        min_size=1,
        max_size=_CONNECTIONS,
        timeout=tasks.pace.connect,
        open=False,
        check=AsyncConnectionPool.check_connection,
        name="daruma-queue",
    )
    pool, users = of_loops.setdefault(loop, (made, []))
    users.append(None)
    try:
        await pool.open()
        async with pool.connection():  # the database is there; `wait` of a pool is for one alone
            pass
        yield pool
    finally:
        users.pop()
        if not users:
            of_loops.pop(loop, None)
            await pool.close()


class _Serving:
    """A worker of procrastinate, and another one wherever the database was lost to it."""

    def __init__(self, app: App, tasks: Tasks, concurrency: int) -> None:
        self._app = app
        self._tasks = tasks
        self._concurrency = concurrency
        self._carried_out = 0
        self._left: set[int] = set()
        """Workers that could not say that they have ended."""

    async def what_is_there(self) -> None:
        before = -1
        while before < self._carried_out:  # what waited for its thread's turn can be next
            before = self._carried_out
            # One that runs several ends with the first that finds nothing, and cuts the others off.
            slots = [
                asyncio.ensure_future(self._worker(wait=False, concurrency=1).run())
                for _ in range(self._concurrency)
            ]
            try:
                await asyncio.gather(*slots)
            except ConnectorException as error:
                raise StorageUnavailable(f"the database was lost ({error.__cause__})") from error
            finally:
                for each in slots:
                    each.cancel()
                await asyncio.gather(*slots, return_exceptions=True)
            await adrain_place(self._tasks.database)  # what has ended becomes a job by that

    async def for_ever(self) -> None:
        pause, task = _PAUSE, asyncio.current_task()
        cancelled = task.cancelling() if task else 0
        while True:
            worker, before = (
                self._worker(wait=True, concurrency=self._concurrency),
                self._carried_out,
            )
            with suppress(ConnectorException):
                for worker_id in [*self._left]:  # so that their jobs can be taken up at once
                    await self._app.job_manager.unregister_worker(worker_id)
                    self._left.discard(worker_id)
                await rescue(self._app.job_manager, self._tasks.queue, self._tasks.pace.stalled)
                await worker.run()  # comes back only where a part of it has failed
            if task and task.cancelling() > cancelled:  # what failed has hidden it
                raise asyncio.CancelledError
            if worker.worker_id is not None:
                self._left.add(worker.worker_id)
            pause = _PAUSE if before < self._carried_out else min(2 * pause, _LONGEST_PAUSE)
            LOG.warning(f"the database was lost: looking for it again in {pause:.0f} s")
            await asyncio.sleep(pause)

    def _worker(self, *, wait: bool, concurrency: int) -> Any:  # its methods are not annotated
        pace = self._tasks.pace
        return Worker(
            self._app,
            queues=[self._tasks.queue],
            concurrency=concurrency,
            wait=wait,
            listen_notify=wait,
            fetch_job_polling_interval=pace.poll,
            abort_job_polling_interval=pace.poll,
            shutdown_graceful_timeout=pace.grace,
            delete_jobs="successful",
            install_signal_handlers=False,
            update_heartbeat_interval=pace.heartbeat,
            stalled_worker_timeout=pace.stalled,
            worker_middleware=[self._counted],
        )

    async def _counted(
        self, job: Callable[[], Awaitable[Any]], context: JobContext, _: Worker
    ) -> Any:
        result = await job()
        self._carried_out += context.job.task_name in (CARRY_OUT, EVOLVE)
        return result
