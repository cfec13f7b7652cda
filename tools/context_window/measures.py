"""What can be done about a request that is over its budget, step by step, until it fits. Pure.

Each measure goes as deep as it may at once: all that is older than the latest part. So it is long
until the next one, and the beginning of the requests between stays the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.compaction import Compaction, Crowded
from daruma.state.context_cost import Measure
from daruma.tools.context_window.parts import latest
from daruma.tools.context_window.tokens import Tokens
from daruma.tools.context_window.view import after, stays, view

FITS: Final = 0.9
"""Part of the budget that a request has to fit in: with less to spare it would be over it again in
a step or two."""
LATEST: Final = 0.4
"""Part of the room beside prompt and tools that the latest messages have, which stay verbatim."""
SUMMARY: Final = 0.2
"""Part of that room that a summary may take."""
CUTS: Final = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 120)
"""Characters of each text, as the last resort: the first that is enough."""


@dataclass(frozen=True)
class Load:
    """What is weighed: the history, and the request that it is too much for.

    ``asked`` are the ids of the messages that say what is to be done now. A compaction is weighed
    once: of a history is known only what is shown of it under the last one that was looked at.
    """

    messages: Sequence[AnyMessage]
    crowded: Crowded
    tokens: Tokens
    task_id: str
    asked: tuple[str, ...] = ()
    _weights: dict[Compaction, int] = field(default_factory=dict, repr=False, compare=False)

    def weight(self, compaction: Compaction) -> int:
        """Return the tokens of the request under a compaction."""
        if compaction not in self._weights:
            self._weights[compaction] = self._weighed(compaction)
        return self._weights[compaction]

    def _weighed(self, compaction: Compaction) -> int:
        memory = 0 if compaction.memory == self.task_id else self.crowded.memory
        history = self.tokens.of_history(view(self.messages, compaction))
        return ceil((self.crowded.fixed + memory + history) * self.crowded.factor)

    def fits(self, compaction: Compaction) -> bool:
        """Whether the request fits with a tenth to spare."""
        return self.weight(compaction) <= FITS * self.crowded.budget

    @property
    def room(self) -> int:
        """Tokens, as we count them, that are left for the history."""
        return max(0, int(FITS * self.crowded.budget / self.crowded.factor) - self.crowded.fixed)

    def older(self, compaction: Compaction) -> str:
        """Return the id of the last message before the latest part; empty where all is of it."""
        shown = view(self.messages, compaction)
        begins = latest(shown, int(LATEST * self.room), self.tokens.of_message)
        return (shown[begins - 1].id or "") if begins else ""


@dataclass(frozen=True)
class Eased:
    """How far it has come: a compaction, and the tokens that each measure saved."""

    compaction: Compaction
    saved: dict[Measure, int]
    fits: bool

    def tried(self, measure: Measure, after: Compaction, load: Load) -> "Eased":
        """Return this with a measure taken, if it saves anything."""
        less = load.weight(self.compaction) - load.weight(after)
        if less <= 0:
            return self
        return Eased(after, {**self.saved, measure: less}, load.fits(after))


def without_model(load: Load, before: Compaction) -> Eased:
    """Take the measures that need no model, until the request fits."""
    eased = Eased(before, {}, load.fits(before))
    for measure, take in _MEASURES.items():
        if not eased.fits:
            eased = eased.tried(measure, take(load, eased.compaction), load)
    return eased


def _without_memory(load: Load, compaction: Compaction) -> Compaction:
    return replace(compaction, memory=load.task_id)


def _pruned(load: Load, compaction: Compaction) -> Compaction:
    return replace(compaction, pruned_through=load.older(compaction))


def _shrunk(load: Load, compaction: Compaction) -> Compaction:
    return replace(compaction, shrunk_through=load.older(compaction))


_MEASURES: dict[Measure, Callable[[Load, Compaction], Compaction]] = {
    "memory": _without_memory,
    "prune": _pruned,
    "shrink": _shrunk,
}


def summarised(load: Load, compaction: Compaction) -> Compaction:
    """Return a compaction whose summary, still to be made, reaches as far as it may.

    It is the same compaction where there is nothing more to summarise.
    """
    through = load.older(compaction)
    known, reached = (after(load.messages, id_) for id_ in (compaction.summarised_through, through))
    kept = tuple(dict.fromkeys(_kept(load, reached)))
    if all(stays(each, kept) for each in load.messages[known:reached]):
        return compaction
    return replace(
        compaction,
        summarised_through=through,
        summarised=sum(not stays(each, kept) for each in load.messages[:reached]),
        kept=kept,
    )


def _kept(load: Load, reached: int) -> Iterator[str]:
    """Yield the ids of the first request of the thread, and of what is to be done now."""
    asked = (each for each in load.messages[:reached] if isinstance(each, HumanMessage) and each.id)
    if first := next(asked, None):
        yield str(first.id)
    yield from (each for each in load.asked if after(load.messages[:reached], each))


def cut(load: Load, compaction: Compaction) -> Compaction:
    """Return a compaction that cuts the middle of all texts, no further than it has to."""
    through = next((each.id for each in reversed(load.messages) if each.id), None)
    cuts = [replace(compaction, cut=most, cut_through=through or "") for most in CUTS]
    spare = next((each for each in cuts if load.fits(each)), None)
    barely = (each for each in (compaction, *cuts) if load.weight(each) <= load.crowded.budget)
    return spare or next(barely, cuts[-1])
