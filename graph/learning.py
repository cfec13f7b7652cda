"""Learning from ended tasks, beside the runs: it delays no answer and fails no task (EV-01)."""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.errors import GraphBubbleUp
from langgraph.store.base import BaseStore

from daruma.graph.learning_jobs import EXIT_SECONDS, Job, Jobs
from daruma.graph.models import AUXILIARY_SECONDS, Asker
from daruma.state.channels import State
from daruma.state.errors import Busy, CutOff, DamagedState
from daruma.state.events import unheard
from daruma.state.failure import TaskFailed, bug_in
from daruma.state.lessons import Experience
from daruma.state.result import TaskResult
from daruma.state.settings import Settings
from daruma.state.task import Status
from daruma.state.text import digest
from daruma.tools.context import Context
from daruma.tools.evolution import (
    Learning,
    answer_nothing,
    experience_of,
    experiences,
    is_sampled,
    key_of,
    learn,
)
from daruma.tools.text import without_keys
from daruma.tools.threads import to_thread

# --- What evolution asks the auxiliary model with: rarely, and whatever comes of it, work goes on.

LOG: Final = logging.getLogger("daruma.evolution")

AskText = Callable[[str, str], Awaitable[str]]


def ask_with(asker: Asker, settings: Settings) -> AskText:
    """Return what asks the auxiliary model; nobody, unless settings allow it and there is one."""
    if not (settings.evolution.auxiliary and asker.own_auxiliary):
        return answer_nothing

    async def ask(prompt: str, text: str) -> str:
        messages = [SystemMessage(prompt), HumanMessage(text)]
        asking = asker("evolution", messages, call=0, role="auxiliary", emit=unheard)
        try:
            answer = await asyncio.wait_for(asking, AUXILIARY_SECONDS)
        except Exception as error:  # noqa: BLE001 - any provider's; what is learned by rule stands
            LOG.info("the auxiliary model was no help: %s", type(error).__name__)
            return ""
        used = answer.usage
        LOG.info("%s: %d tokens in, %d out", used.model, used.input_tokens, used.output_tokens)
        return answer.message.text

    return ask


# --- What became of the tasks that were to be learned from: counted, and said where it went wrong.

_LONGEST: Final = 300
"""Characters of a reason that are logged."""


class NotSampled(Exception):
    """Raised for a task that is not learned from: it simply went well, as most do."""


class NotTaken(Exception):
    """Raised where too much waits already: the task is dropped, and counted."""


@dataclass(frozen=True)
class Counts:
    """How many ended tasks were ``accepted``, and what became of them.

    ``learned`` from, ``skipped`` as successes that are not sampled, ``failed``; or ``dropped``, as
    too many were pending.
    """

    accepted: int = 0
    learned: int = 0
    skipped: int = 0
    failed: int = 0
    dropped: int = 0


_Outcome = Literal["accepted", "learned", "skipped", "failed", "dropped"]


class Tally:
    """Counts outcomes, on any thread. Of tasks that are dropped in a row it says one line."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._dropping = False
        self._lock = threading.RLock()  # as that of jobs

    @property
    def counts(self) -> Counts:
        """All that was counted up to now."""
        with self._lock:
            return Counts(**self._counted)

    def accept(self) -> None:
        """Count a task that was taken on."""
        self._count("accepted")
        self._dropping = False

    def drop(self, reason: str) -> None:
        """Count a task that was not."""
        self._count("dropped")
        if not self._dropping:
            self._dropping = True
            LOG.warning("tasks are not learned from: %s", reason)

    def end(self, task_id: str, error: BaseException | None) -> None:
        """Count how learning from a task has ended: what was raised, or None."""
        if error is None:
            self._count("learned")
        elif isinstance(error, NotSampled):
            self._count("skipped")
        elif isinstance(error, NotTaken):
            self.drop(_line_of(error))
        else:
            self._count("failed")
            told = f"{type(error).__name__}: {_line_of(error)}"
            LOG.warning("nothing was learned from task %r: %s", task_id, told)

    def _count(self, outcome: _Outcome) -> None:
        with self._lock:
            self._counted[outcome] += 1


def _line_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - anybody's class
        return "it can not be told"
    return " ".join(without_keys(text).split())[:_LONGEST]


# --- Handing a run's task to evolution once the run is over, whichever way it ended (EV-01).

_LATER = (GraphBubbleUp, CutOff, Busy, DamagedState)
"""What leaves a thread to be gone on with, and says nothing of its task."""


@dataclass(frozen=True)
class Ended:
    """A task that is over, under the settings of its run; ``store`` is where experience goes.

    One whose thread is not ``remembered`` has an id that others have, too: each is the first.
    """

    state: State
    status: Status
    settings: Settings
    store: BaseStore | None
    remembered: bool = True


class HandingOver:
    """What one run has come to, for as long as it lasts; then it is handed over, at most once."""

    def __init__(self, hand_over: Callable[[Ended], None], *, remembered: bool = True) -> None:
        self._hand_over, self._remembered = hand_over, remembered
        self._newest: tuple[str, State, Context] | None = None
        self._status: Status | None = None
        self._earlier: str | None = None
        self._waits = False

    def entered(self, node: str, state: object, context: Context) -> None:
        """Note that a node is called: whatever had ended goes on."""
        if not isinstance(state, State):  # one of several that were sent out
            return
        if node == "intake":  # the task that it finds is the one before
            self._earlier = state.task.id if state.task else None
        begun = state.task is not None and state.task.id != self._earlier
        self._newest = (node, state, context) if begun else None
        self._status = None

    def waits(self) -> None:
        """Note that a node asks a person: who reads no further then has not broken anything off."""
        self._waits = True

    def ended(self, state: State, result: TaskResult) -> None:
        """Note the result that a task ends with, unless another node is called after it."""
        if self._newest and state.task_id == result.task_id:
            self._status = result.status

    @contextmanager
    def after(self) -> Iterator[None]:
        """Hand the run's task over once its parts were read, or whoever read them went away."""
        try:
            yield
        except BaseException as error:
            self._end(error)
            raise
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        """Hand over what has a result, or was broken off; not what waits, or can be gone on with.

        What is raised after the result, as settings may ask for, is the same ending told again.
        """
        newest, status = self._newest, self._status
        self._newest = self._status = None
        if newest is None or self._waits or isinstance(error, _LATER):
            return
        node, state, context = newest
        if status is None and error is not None:
            status = "cancelled"
            if isinstance(error, Exception):
                status = "failed"
                if not state.failure:  # it left the machine by another
                    of_task = error.failure if isinstance(error, TaskFailed) else None
                    failure = of_task or bug_in(node, error)
                    state = replace(state, failure=failure, origin=state.origin or failure)
        if status:
            kept = self._remembered
            self._hand_over(Ended(state, status, context.settings, context.store, kept))


# --- Learning from ended tasks, beside the runs: it delays no answer and fails no task (EV-01).

Learn = Callable[[Experience, Learning], Awaitable[None]]


class Evolution:
    """What learns from the ended tasks of a graph. All of it may be called on any thread.

    ``ask_under`` gives what asks the auxiliary model under a run's settings.
    """

    def __init__(
        self,
        ask_under: Callable[[Settings], AskText] = lambda _: answer_nothing,
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
            task, settings = ended.state.task, ended.settings.evolution
            if settings.enabled and ended.store is not None and task and task.mode != "direct_chat":
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
        if ended.store is None:
            return
        try:
            experience = await to_thread(partial(_experience_of, ended, at))
        except RuntimeError:  # the process ends: there are no new threads
            experience = _experience_of(ended, at)
        if not is_sampled(experience, ended.settings.evolution.success_sample_rate):
            # One that is on record from before must not stay there as failed.
            known = await experiences(ended.store, experience.owner).get(key_of(experience))
            if known is None:
                raise NotSampled
        ask = self.ask_under(ended.settings)
        await self._learn(experience, Learning(ended.store, ended.settings, ask))


def _experience_of(ended: Ended, at: float) -> Experience:
    found, task = experience_of(ended.state, ended.status, at), ended.state.task
    if ended.remembered or task is None:
        return found
    own = digest([task.id, task.request, task.started_at])[:8]
    return replace(found, task_id=f"{task.id}-{own}")
