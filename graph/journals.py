"""Where a run's journal of effects is: in its checkpointer's database, else in this process."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_MAP,
    CONFIG_KEY_CHECKPOINT_NS,
    NS_SEP,
)

from daruma.state.text import digest
from daruma.tools.calls.journal import Effect, Entry, Journal, NoJournal, Outcome


class Place(NamedTuple):
    """The checkpoint that a call is made from; a fork makes it from another one, once more."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str

    @classmethod
    def of(cls, config: RunnableConfig) -> Self | None:
        """Return that of the node which a config is given to; None where nothing is kept."""
        given = config.get("configurable", {})
        own = str(given.get(CONFIG_KEY_CHECKPOINT_NS, ""))
        above = own.rpartition(NS_SEP)[0]
        checkpoint = given.get(CONFIG_KEY_CHECKPOINT_MAP, {}).get(above)
        thread = given.get("thread_id")
        return cls(str(thread), above, str(checkpoint)) if thread and checkpoint else None


@runtime_checkable
class Journals(Protocol):
    """What has the journals of threads."""

    def journal_at(self, place: Place, run: str) -> Journal:
        """Return the journal for a place, as one run keeps it."""


class ProcessJournals:
    """Journals within this process, for checkpointers that have no place for them."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Place, str, str], tuple[str, Entry]] = {}
        """The run that has begun or ended it last, and what is on record."""
        self.lock = Lock()

    def journal_at(self, place: Place, run: str) -> "ProcessJournal":
        return ProcessJournal(self, place, run)


class ProcessJournal:
    """The journal at one place."""

    def __init__(self, journals: ProcessJournals, place: Place, run: str) -> None:
        self._journals = journals
        self._place = place
        self._run = run

    async def begin(self, effect: Effect) -> Entry:
        with self._journals.lock:
            self._drop_passed()
            fresh = Entry(effect, key=key_of(self._place, effect))
            by, entry = self._journals.entries.setdefault(self._name(effect), (self._run, fresh))
            return replace(entry, cut_short=entry.outcome is None and by != self._run)

    async def again(self, entry: Entry) -> Entry:
        return self._keep(replace(entry, attempt=entry.attempt + 1, cut_short=False))

    async def end(self, entry: Entry, outcome: Outcome) -> None:
        self._keep(replace(entry, cut_short=False, outcome=outcome))

    async def forget(self, entry: Entry) -> None:
        with self._journals.lock:
            self._journals.entries.pop(self._name(entry.effect), None)

    async def cut_short(self, workspace: str) -> Sequence[Entry]:
        with self._journals.lock:
            return [
                entry
                for (place, _, _), (run, entry) in self._journals.entries.items()
                if place == self._place
                and entry.effect.workspace == workspace
                and entry.outcome is None
                and run != self._run
            ]

    def _keep(self, entry: Entry) -> Entry:
        with self._journals.lock:
            self._journals.entries[self._name(entry.effect)] = self._run, entry
        return entry

    def _name(self, effect: Effect) -> tuple[Place, str, str]:
        return self._place, effect.call, effect.digest

    def _drop_passed(self) -> None:
        """Forget what the thread has left behind: it can only be come to again by a fork."""
        here, entries = self._place, self._journals.entries
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


class JournalsOfARun(NamedTuple):
    """Where the journals of a run are, and what it is known by in them."""

    journals: Journals
    run: str


def journal_of(config: RunnableConfig, journals: JournalsOfARun | None) -> Journal:
    """Return the journal for the node that a config is given to."""
    place = Place.of(config) if journals else None
    return journals.journals.journal_at(place, journals.run) if journals and place else NoJournal()


def journals_of(checkpointer: Any) -> Journals:
    """Return where a checkpointer's journals are: its own place, else one in this process.

    The latter goes with the object, so that all graphs over one checkpointer know what was done.
    """
    if isinstance(checkpointer, Journals):
        return checkpointer
    made: Journals = checkpointer.__dict__.setdefault("journals", ProcessJournals())
    return made
