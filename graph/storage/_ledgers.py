"""Leases, journals, replies, outputs, steering of runs, also in memory; a run's hold (DU-03)."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from daruma.state.errors import ThreadBusy
from daruma.state.mode import split_prefix
from daruma.state.serializer import STORED_TYPES, StrictSerializer
from daruma.state.steering import Steering, SteeringMessage
from daruma.state.text import digest
from daruma.tools.calls import (
    Effect,
    Journal,
    JournalEntry,
    NoJournal,
    Outcome,
    OutputStore,
    ProcessOutputs,
)

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

# --- Leases: one thread is run by one run at a time, wherever that is (DU-03).
#
# A lease has a token that only grows. Who has lost its lease, by being frozen or cut off for longer
# than that lasts, still holds the old token, and can not write with it.


@dataclass(frozen=True)
class Hold:
    """A lease that was taken: the thread, the token to write with, and the run that has it.

    ``steered`` says that something waits that a person sent to the thread.
    """

    thread_id: str
    token: int
    run: str
    steered: bool = False


class Leases(Protocol):
    """Where leases are taken. Taking one raises :class:`~daruma.state.errors.ThreadBusy`."""

    def take(self, thread_id: str) -> Hold:
        """Take the lease of a thread, and keep it alive until it is given back."""

    async def atake(self, thread_id: str) -> Hold:
        """The same, asynchronous."""

    def give_back(self, hold: Hold) -> None:
        """Give it back, if it is still held; never raises for a database that is lost."""

    async def agive_back(self, hold: Hold) -> None:
        """The same, asynchronous."""


class ProcessLeases:
    """Leases within this process, for checkpointers that have no place for them."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        self._lock = Lock()

    def take(self, thread_id: str) -> Hold:
        hold = Hold(thread_id, 0, uuid4().hex)
        with self._lock:
            if self._runs.setdefault(thread_id, hold.run) != hold.run:
                raise ThreadBusy(
                    f"thread {thread_id!r} is being run in this process: wait until that has ended"
                )
        return hold

    def has(self, thread_id: str) -> bool:
        """Whether a thread is held."""
        return thread_id in self._runs

    async def atake(self, thread_id: str) -> Hold:
        return self.take(thread_id)

    def give_back(self, hold: Hold) -> None:
        with self._lock:
            if self._runs.get(hold.thread_id) == hold.run:
                del self._runs[hold.thread_id]

    async def agive_back(self, hold: Hold) -> None:
        self.give_back(hold)


# --- The name that what is kept of a thread's files goes by, outside of its checkpointer.


def workspace_files_id(checkpointer: Any, thread_id: str) -> str:
    """Return it: for a checkpointer in memory, whose threads end with it, one of its own.

    Else a thread that has the name of an earlier one would find that one's snapshots and edits.
    """
    if not isinstance(checkpointer, InMemorySaver) or type(checkpointer.storage) is not defaultdict:
        return thread_id
    own = checkpointer.__dict__.setdefault("files_id", uuid4().hex)
    return f"{thread_id}\0{own}"  # no thread's name has a NUL


# --- The journal of effects: by the place in the thread that they are begun from (DU-06).


class Place(NamedTuple):
    """The checkpoint that a call is made from; a fork makes it from another one, once more."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str

    @classmethod
    def of(cls, config: RunnableConfig) -> Self | None:
        """Return that of the node which a config is given to; None where nothing is kept."""
        given = config.get("configurable", {})
        own = str(given.get("checkpoint_ns", ""))
        above = own.rpartition("|")[0]
        checkpoint = given.get("checkpoint_map", {}).get(above)
        thread = given.get("thread_id")
        return cls(str(thread), above, str(checkpoint)) if thread and checkpoint else None


class Effects:
    """What is on record of effects within this process, and by which run."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Place, str, str], tuple[str, JournalEntry]] = {}
        """The run that has begun or ended it last, and what is on record."""
        self.lock = Lock()


@dataclass(frozen=True)
class ProcessJournal:
    """The journal at one place, for checkpointers that have no place for it."""

    effects: Effects
    place: Place
    run: str

    async def begin(self, effect: Effect) -> JournalEntry:
        with self.effects.lock:
            self._drop_passed()
            fresh = JournalEntry(effect, key=key_of(self.place, effect))
            by, entry = self.effects.entries.setdefault(self._name(effect), (self.run, fresh))
            return replace(entry, cut_short=entry.outcome is None and by != self.run)

    async def again(self, entry: JournalEntry) -> JournalEntry:
        return self._keep(replace(entry, attempt=entry.attempt + 1, cut_short=False))

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        self._keep(replace(entry, cut_short=False, outcome=outcome))

    async def forget(self, entry: JournalEntry) -> None:
        with self.effects.lock:
            self.effects.entries.pop(self._name(entry.effect), None)

    async def cut_short(self, workspace: str) -> Sequence[JournalEntry]:
        with self.effects.lock:
            return [
                entry
                for (place, _, _), (run, entry) in self.effects.entries.items()
                if place == self.place
                and entry.effect.workspace == workspace
                and entry.outcome is None
                and run != self.run
            ]

    def _keep(self, entry: JournalEntry) -> JournalEntry:
        with self.effects.lock:
            self.effects.entries[self._name(entry.effect)] = self.run, entry
        return entry

    def _name(self, effect: Effect) -> tuple[Place, str, str]:
        return self.place, effect.call, effect.digest

    def _drop_passed(self) -> None:
        """Forget what the thread has left behind: it can only be come to again by a fork."""
        here, entries = self.place, self.effects.entries
        passed = [
            name
            for name, (_, entry) in entries.items()
            if name[0][:2] == here[:2] and name[0].checkpoint_id < here.checkpoint_id
            if entry.outcome
        ]
        for name in passed:
            del entries[name]


def key_of(place: Place, effect: Effect) -> str:
    """Return the key of an effect that is begun for the first time."""
    return digest([*place, effect.call, effect.digest])


# --- Replies to questions, accepted once: the first one to come counts, whoever else answers.
#
# A reply is on record before the run that it starts. A run that is killed in between is resumed
# with the reply that was accepted, so nobody is asked again.


class Replies(Protocol):
    """Where accepted replies are kept, by thread and by the id of the question's interrupt."""

    async def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        """Keep all of the replies, or none and return False if one of them is there already."""

    async def find(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        """Return those replies to the questions of these ids that are there."""

    async def has_decisions(self, thread_id: str) -> bool:
        """Whether there is a reply that approves or denies calls, to any question of a thread."""


def decides(reply: object) -> bool:
    """Whether a reply approves or denies calls."""
    return isinstance(reply, Mapping) and "decisions" in reply


class ProcessReplies:
    """Replies kept in this process, for checkpointers that have no place for them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Any] = {}
        self._lock = Lock()

    async def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        with self._lock:
            if any((thread_id, id_) in self._kept for id_ in replies):
                return False
            self._kept.update({(thread_id, id_): reply for id_, reply in replies.items()})
            return True

    async def find(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        with self._lock:
            return {
                id_: self._kept[thread_id, id_] for id_ in ids if (thread_id, id_) in self._kept
            }

    async def has_decisions(self, thread_id: str) -> bool:
        with self._lock:
            return any(decides(it) for (thread, _), it in self._kept.items() if thread == thread_id)


# --- What people send to threads at work, until their histories hold it (FA-14).

MOST_WAITING: Final = 100
"""Messages to one thread that may wait at once."""


class SteeringQueue(Steering, Protocol):
    """Where what is sent waits, by thread."""

    async def send(self, thread_id: str, message: SteeringMessage) -> bool:
        """Keep a message; return False where too many wait."""


class ProcessSteering:
    """What waits within this process, for checkpointers that have no place for it."""

    def __init__(self) -> None:
        self._waiting = defaultdict[str, list[SteeringMessage]](list)
        self._lock = Lock()

    def waits(self, thread_id: str) -> bool:
        return bool(self._waiting.get(thread_id))

    async def read(self, thread_id: str) -> Sequence[SteeringMessage]:
        return [*self._waiting[thread_id]]

    async def send(self, thread_id: str, message: SteeringMessage) -> bool:
        with self._lock:
            waiting = self._waiting[thread_id]
            if message.id in [each.id for each in waiting]:
                return True
            if len(waiting) >= MOST_WAITING:
                return False
            waiting.append(message)
            return True

    def forget(self, thread_id: str, ids: Collection[str]) -> None:
        with self._lock:
            left = [each for each in self._waiting.pop(thread_id, ()) if each.id not in ids]
            if left:
                self._waiting[thread_id] = left


# --- The ledger: all that is kept of threads beside their checkpoints.


class Ledger(Protocol):
    """Who runs a thread, what was done, said and answered on it, and its large outputs."""

    leases: Leases
    replies: Replies
    steering: SteeringQueue

    @property
    def outputs(self) -> OutputStore:
        """Where large outputs are kept."""

    def journal_at(self, place: Place, run: str) -> Journal:
        """Return the journal of effects for a place, as one run keeps it."""


class ProcessLedger:
    """A ledger within this process, for checkpointers that are none."""

    def __init__(self) -> None:
        self.leases = ProcessLeases()
        self.replies: Replies = ProcessReplies()
        self.steering = ProcessSteering()
        self.outputs = ProcessOutputs()
        self.effects = Effects()

    def journal_at(self, place: Place, run: str) -> Journal:
        return ProcessJournal(self.effects, place, run)


def ledger_of(checkpointer: Any) -> Ledger:
    """Return a checkpointer's ledger: itself, where it is one, else one within this process.

    The latter goes with the object, also into copies of it, so that all graphs over one
    checkpointer know who runs, what was done, and what was answered.
    """
    if hasattr(checkpointer, "journal_at"):
        own: Ledger = checkpointer
        return own
    # Its class may be the application's, with a `ledger` of another kind.
    made: Ledger = checkpointer.__dict__.setdefault("daruma_ledger", ProcessLedger())
    return made


def is_held_here(checkpointer: Any, thread_id: str) -> bool:
    """Whether a run of this process has a thread, for checkpointers that have no leases."""
    leases = ledger_of(checkpointer).leases
    return isinstance(leases, ProcessLeases) and leases.has(thread_id)


def journal_of(config: RunnableConfig, ledger: Ledger | None, run: str) -> Journal:
    """Return the journal for the node that a config is given to, as a run keeps it."""
    place = Place.of(config) if ledger else None
    return ledger.journal_at(place, run) if ledger and place else NoJournal()


# --- A checkpointer as the machine reads with it (DU-05).


def strict_saver(checkpointer: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return a checkpointer over the same data that reads back listed types only.

    LangGraph's own serializer imports whatever a row names. One that was chosen on purpose stays.
    Ours refuses what is no value of the machine's channels, too.
    """
    if expecting := getattr(checkpointer, "expecting", None):
        from daruma.state.channels import refuse_misfits

        ours: BaseCheckpointSaver[Any] = expecting(refuse_misfits)
        return ours
    ledger_of(checkpointer)  # made before the copy, which shares it
    workspace_files_id(checkpointer, "")
    if type(checkpointer.serde) is not JsonPlusSerializer:
        return checkpointer
    strictly = copy(checkpointer)
    strictly.serde = StrictSerializer(STORED_TYPES)
    return strictly


# --- A run's hold on what it works with: its thread, anywhere, and its workspace, on this host.


@contextmanager
def thread_held(checkpointer: Any, thread_id: str) -> Iterator[Any]:
    """Hold a thread, and yield the checkpointer to write on it with.

    What a run wrote is stored before it lets go; its own error comes first. Raises
    :class:`~daruma.state.errors.ThreadBusy`.
    """
    leases = ledger_of(checkpointer).leases
    hold = leases.take(thread_id)
    saver = _writing(checkpointer, hold)
    settled = getattr(saver, "settled", lambda: None)
    try:
        try:
            yield saver
        except BaseException:
            with suppress(Exception):  # a run that failed says why; what was lost is done again
                settled()
            raise
        settled()
    finally:
        leases.give_back(hold)


@asynccontextmanager
async def athread_held(checkpointer: Any, thread_id: str) -> AsyncIterator[Any]:
    """Do the same, asynchronously."""
    leases = ledger_of(checkpointer).leases
    hold = await leases.atake(thread_id)
    saver = _writing(checkpointer, hold)
    settled = getattr(saver, "asettled", None)
    try:
        try:
            yield saver
        except BaseException:
            with suppress(Exception):  # also swept away after its loop was closed: there is none
                asyncio.get_running_loop()
                if settled:
                    await settled()
            raise
        if settled:
            await settled()
    finally:
        await leases.agive_back(hold)


def _writing(checkpointer: Any, hold: Hold) -> Any:
    held = getattr(checkpointer, "held", None)
    return held(hold) if held else checkpointer


def workspace_of(given: Any, snapshot: "StateSnapshot | None") -> str | None:
    """Return the workspace that a run may change; None for one that only chats.

    ``given`` is what the run is started with, once it was admitted.
    """
    task = snapshot.values.get("task") if snapshot else None
    known = task.workspace if task else None
    if not isinstance(given, Mapping):
        return None if task and task.mode == "direct_chat" else known
    mode = given.get("mode") or split_prefix(given["messages"][-1].text)[0]
    return None if mode == "direct_chat" else given.get("workspace") or known
