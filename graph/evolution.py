"""Learning from ended tasks, beside the runs: it delays no answer and fails no task (EV-01)."""

import time
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import replace
from functools import partial

from langgraph.store.base import BaseStore

from daruma.graph.evolving.asking import AskText
from daruma.graph.evolving.job import Job
from daruma.graph.evolving.jobs import EXIT_SECONDS, Jobs
from daruma.graph.evolving.tally import Counts, NotSampled, Tally
from daruma.graph.handing_over import Ended
from daruma.state.lessons import Experience
from daruma.state.settings import Settings
from daruma.state.text import digest
from daruma.tools.evolution.learning import Learning, learn, nobody
from daruma.tools.evolution.reflector import experience_of, is_sampled
from daruma.tools.evolution.shelf import key_of, shelf
from daruma.tools.threads import to_thread

Learn = Callable[[Experience, Learning], Awaitable[None]]


def no_model(settings: Settings) -> AskText:  # noqa: ARG001 - under any settings
    """Have nobody asked."""
    return nobody


class Evolution:
    """What learns from the ended tasks of a graph. All of it may be called on any thread.

    ``ask_under`` gives what asks the auxiliary model under a run's settings.
    """

    def __init__(
        self,
        ask_under: Callable[[Settings], AskText] = no_model,
        learn: Learn = learn,
        jobs: Jobs | None = None,
    ) -> None:
        self.ask_under, self._learn = ask_under, learn
        self._jobs, self._tally = jobs or Jobs(), Tally()

    @property
    def counts(self) -> Counts:
        """What became of the tasks that were handed over, up to now."""
        return self._tally.counts

    def by(self, learn: Learn) -> "Evolution":
        """Return one that learns in another way, and shares the jobs and the counts of this one."""
        other = copy(self)
        other._learn = learn
        return other

    def drain(self, seconds: float = EXIT_SECONDS) -> bool:
        """Wait until all is learned, so long at most; return whether it was.

        What is not learned by then is cancelled, and counted as failed.
        """
        return self._jobs.drain(seconds)

    async def adrain(self, seconds: float = EXIT_SECONDS) -> bool:
        """Do the same on any event loop."""
        return await self._jobs.adrain(seconds)

    def hand_over(self, ended: Ended) -> None:
        """Have an ended task learned from: at once, without waiting, without ever raising.

        Nothing happens where there is no store, where evolution is switched off, or for what was
        but chat. Of more than twice ``max_concurrent`` that are pending, the rest is dropped.
        """
        try:
            if is_learned_from(ended):
                self._take(ended)
        except Exception as error:  # noqa: BLE001 - learning fails no task
            self._tally.end(ended.state.task_id, error)

    def _take(self, ended: Ended) -> None:
        most = ended.settings.evolution.max_concurrent
        job = Job(
            work=partial(self._work, ended, time.time()),
            told=partial(self._tally.end, ended.state.task_id),
            at_once=most,
            place=getattr(ended.store, "database", ended.store),
        )
        if self._jobs.take(job, 2 * most):
            self._tally.accept()
        else:
            self._tally.drop(f"{2 * most} are pending, as many as evolution.max_concurrent allows")

    async def _work(self, ended: Ended, at: float) -> None:
        experience = await _off_the_loop(partial(_experience_of, ended, at))
        rate = ended.settings.evolution.success_sample_rate
        if not is_sampled(experience, rate) and not await _is_known(experience, ended.store):
            raise NotSampled
        if ended.store is not None:
            ask = self.ask_under(ended.settings)
            await self._learn(experience, Learning(ended.store, ended.settings, ask))


def is_learned_from(ended: Ended) -> bool:
    """Whether anything is to be done about an ended task."""
    wanted = ended.settings.evolution.enabled and ended.store is not None
    return wanted and ended.state.task is not None and ended.state.task.mode != "direct_chat"


async def _is_known(experience: Experience, store: BaseStore | None) -> bool:
    """Whether a task is on record from before: it must not stay there as failed."""
    place = shelf(experience.owner, "experiences")
    return store is not None and await store.aget(place, key_of(experience)) is not None


def _experience_of(ended: Ended, at: float) -> Experience:
    found, task = experience_of(ended.state, ended.status, at), ended.state.task
    if ended.remembered or task is None:
        return found
    own = digest([task.id, task.request, task.started_at])[:8]
    return replace(found, task_id=f"{task.id}-{own}")


async def _off_the_loop(make: Callable[[], Experience]) -> Experience:
    try:
        return await to_thread(make)
    except RuntimeError:  # the process ends: there are no new threads
        return make()
