"""Working a queue off: any number of processes and machines may do so over one database."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from daruma.graph.compiled import Machine
from daruma.graph.evolving.jobs import adrain_place
from daruma.graph.interruptible import Cancelled, run_interruptible
from daruma.graph.workers.engine import (
    App,
    ConnectorException,
    JobContext,
    PsycopgConnector,
    Worker,
)
from daruma.graph.workers.pace import Pace
from daruma.graph.workers.queue_tables import make_queue
from daruma.graph.workers.rescue import rescue
from daruma.graph.workers.shared import shared_database
from daruma.graph.workers.submit import QUEUE
from daruma.graph.workers.sweep import always
from daruma.graph.workers.task_names import CARRY_OUT, EVOLVE
from daruma.graph.workers.tasks import LOG, Tasks
from daruma.state.errors import StorageUnavailable

_CONNECTIONS: Final = 3
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
    tasks = Tasks(shared_database(graph), always(graph), graph, queue, pace or Pace())
    await serve(tasks, concurrency=concurrency, wait=wait)


async def serve(tasks: Tasks, *, concurrency: int, wait: bool) -> None:
    """Carry out what comes on the queue of these tasks."""
    await make_queue(tasks.database)
    connector = PsycopgConnector(
        conninfo=str(tasks.database.pool.conninfo),
        min_size=1,
        max_size=_CONNECTIONS,
        timeout=tasks.pace.connect,
    )
    app = App(connector=connector)
    tasks.declare(app)
    async with app.open_async():
        await rescue(app.job_manager, tasks.queue, tasks.pace.stalled)
        await tasks.park_all()
        serving = _Serving(app, tasks, concurrency)
        await (serving.for_ever() if wait else serving.what_is_there())


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
            try:
                await self._worker(wait=False).run()
            except ConnectorException as error:
                raise StorageUnavailable(f"the database was lost ({error.__cause__})") from error
            await adrain_place(self._tasks.database)  # what has ended becomes a job by that

    async def for_ever(self) -> None:
        pause = _PAUSE
        while True:
            worker, before = self._worker(wait=True), self._carried_out
            with suppress(ConnectorException):
                await self._say_ended()
                await worker.run()  # comes back only where a part of it has failed
            if worker.worker_id is not None:
                self._left.add(worker.worker_id)
            pause = _PAUSE if before < self._carried_out else min(2 * pause, _LONGEST_PAUSE)
            LOG.warning(f"the database was lost: looking for it again in {pause:.0f} s")
            await asyncio.sleep(pause)

    async def _say_ended(self) -> None:
        for worker_id in [*self._left]:  # so that their jobs can be taken up at once
            await self._app.job_manager.unregister_worker(worker_id)
            self._left.discard(worker_id)
        await rescue(self._app.job_manager, self._tasks.queue, self._tasks.pace.stalled)

    def _worker(self, *, wait: bool) -> Any:  # its methods are not annotated
        pace = self._tasks.pace
        return Worker(
            self._app,
            queues=[self._tasks.queue],
            concurrency=self._concurrency,
            wait=wait,
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
