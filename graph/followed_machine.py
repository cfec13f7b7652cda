"""The machine as others see it: what a thread's run tells, and where the thread stands."""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.bridge import run
from daruma.graph.door import open_questions
from daruma.graph.following import Following
from daruma.graph.new_request import NoSuchThread
from daruma.graph.pictures.moment import Moment
from daruma.graph.pictures.seen_machine import SeenMachine
from daruma.graph.starting_point import newest
from daruma.graph.stopping import stop_of
from daruma.graph.storage.saver import PostgresSaver
from daruma.graph.workers.standing import Standing, standing_of, standings
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.compiled import Machine


class NotFollowed(DarumaError):
    """Raised for a graph whose threads no other process can get at."""


@dataclass(frozen=True)
class Look:
    """Where a thread stands: ``status`` is queued, running, waiting, a result's, or unfinished.

    ``questions`` have an ``id``, which the reply goes by, and a ``value``; ``events`` are those of
    its newest run, each with its ``type``, as far as they are kept; ``timeline`` is what happened
    on the thread, from its record. ``error`` is why a worker could not run it.
    """

    thread: str
    status: str
    goal: str
    questions: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None
    error: str
    events: tuple[dict[str, Any], ...]
    timeline: tuple[Moment, ...]

    @classmethod
    def of(
        cls,
        thread: str,
        snapshot: StateSnapshot,
        standing: Standing | None,
        answered: Collection[str],
        events: Iterable[dict[str, Any]],
        timeline: tuple[Moment, ...],
    ) -> Self:
        """Put it together."""
        stop = stop_of(snapshot, answered=answered, error=standing.error if standing else "")
        busy, task = standing is not None and standing.is_busy, snapshot.values.get("task")
        done = stop.result["status"] if stop.result else "unfinished"
        status = standing.what if standing and busy else stop.outcome
        return cls(
            thread=thread,
            status=done if status == "done" else status,
            goal=task.goal if task else (standing.request if standing else ""),
            questions=() if busy else stop.questions,
            result=None if busy else stop.result,
            error=stop.error,
            events=tuple(events),
            timeline=timeline,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return asdict(self)


class FollowedMachine(SeenMachine):
    """A graph whose threads can be looked at and followed by who does not run them."""

    async def afollow(self, config: RunnableConfig, *, after: int | None = None) -> Following:
        """Return the events of a thread, from what it does now, or will do next, until it stops.

        They come from any process where a worker runs the thread, and are kept for a day. ``after``
        is the id of an event to go on from. To hear all of what you are about to submit, follow
        first. Raises :class:`NotFollowed` for a graph that was built without Postgres.
        """
        saver, thread_id = self._shared(), self._thread_id(config)
        if after is None:
            busy = await standing_of(saver.database, thread_id)
            log = saver.events
            after = await (log.newest_stop(thread_id) if busy else log.newest(thread_id))
        machine = cast("Machine", self)
        return Following(machine, saver.database, saver.events, thread_id, after)

    async def alook(self, config: RunnableConfig) -> Look:
        """Return where a thread stands, whoever runs it.

        Raises :class:`~daruma.graph.new_request.NoSuchThread` where there is no such thread.
        """
        saver, thread_id = self._shared(), self._thread_id(config)
        standing = (await standings(saver.database, thread_id)).get(thread_id)
        snapshot = await self.aget_state(newest(self._thread(config)))
        if standing is None and snapshot.created_at is None:
            raise NoSuchThread(f"there is no thread {thread_id!r}")
        answered = await saver.replies.aaccepted(thread_id, open_questions(snapshot))
        heard = await saver.events.of_newest_run(thread_id)
        events = [each.event for each in heard]
        told = await self._moments(config, snapshot)
        return Look.of(thread_id, snapshot, standing, answered, events, told)

    async def _moments(self, config: RunnableConfig, snapshot: StateSnapshot) -> tuple[Moment, ...]:
        if snapshot.created_at is None:  # it is only queued yet
            return ()
        return (await self.atimeline(newest(self._thread(config)))).moments

    def look(self, config: RunnableConfig) -> Look:
        """Do the same on a thread that may wait."""
        return run(self.alook(config))

    def follow(self, config: RunnableConfig, *, after: int | None = None) -> Following:
        """Do the same on a thread that may wait."""
        return run(self.afollow(config, after=after))

    def _shared(self) -> PostgresSaver:
        if not isinstance(self.checkpointer, PostgresSaver):
            raise NotFollowed("only threads in Postgres can be followed: persistence=pg")
        return self.checkpointer
