"""Bringing one request under its budget: the measures in their order, and what came of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state import budget
from daruma.state import plan as phases
from daruma.state.channels import State
from daruma.state.failure import Failure
from daruma.state.steps import Compaction, ContextCost, Crowded
from daruma.state.steps import ContextMeasure as Measure
from daruma.tools.context import Context
from daruma.tools.tokens import Tokens
from daruma.tools.window._draft import limit_named
from daruma.tools.window._summary import Call, Job, Role, Summariser
from daruma.tools.window._view import after, latest, stays, view

# --- What can be done about a request that is over its budget, step by step, until it fits. Pure.
#
# Each measure goes as deep as it may at once: all that is older than the latest part. So it is long
# until the next one, and the beginning of the requests between stays the same.

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


# --- Bringing one request under its budget: the measures in their order, and what came of them.

LADDER: Final[dict[bool, list[Role]]] = {True: ["auxiliary", "main"], False: ["main"]}
"""Who is asked for a summary, by whether the auxiliary model is one of its own (CX-02, CX-03)."""


@dataclass(frozen=True)
class CompactionResult:
    """How the history is shown from now on, at what cost, and by which calls to models."""

    compaction: Compaction
    cost: ContextCost
    calls: tuple[Call, ...]
    failure: Failure | None


async def compact_history(state: State, crowded: Crowded, context: Context) -> CompactionResult:
    """Take as many measures as it needs; where none is enough, say what the request takes."""
    load = Load(state.messages, crowded, context.tokens, state.task_id, _asked(state))
    given = _begun(state, crowded)
    eased, summariser = without_model(load, _uncut(given)), _summariser(state, context)
    before = eased.compaction
    if not eased.fits:
        eased = await _summarised(load, eased, state, summariser)
    if not eased.fits:
        eased = eased.tried("cut", cut(load, eased.compaction), load)
    new = eased.compaction.summarised_through != before.summarised_through
    cost = ContextCost(
        node=crowded.node,
        budget=crowded.budget,
        before=load.weight(given),
        after=load.weight(eased.compaction),
        saved=eased.saved,
        messages=eased.compaction.summarised - before.summarised if new else 0,
        by=summariser.by if new else "",
        exact=context.tokens.exact,
        refused=bool(crowded.refused),
    )
    failure = (
        _too_large(crowded, cost, limit_named(state, context)) if cost.after > cost.budget else None
    )
    return CompactionResult(eased.compaction, cost, tuple(summariser.calls), failure)


def _asked(state: State) -> tuple[str, ...]:
    """Return the ids of the task's own request, and of what the phase at hand is about."""
    plan = state.plan
    task = (state.task.request,) if state.task else ()
    return (*task, phases.message_id(plan.id, plan.current)) if plan and plan.current else task


def _begun(state: State, crowded: Crowded) -> Compaction:
    before = replace(state.compaction or Compaction(), asked_by=crowded.node)
    if crowded.refused:
        return replace(before, limit=crowded.budget, limit_of=state.task_id)
    return before


def _uncut(before: Compaction) -> Compaction:
    """The last resort was for what was the latest then; whether it is needed again is seen last."""
    return replace(before, cut=0, cut_through="")


def _summariser(state: State, context: Context) -> Summariser:
    roles = [*LADDER[context.own_auxiliary]]
    return Summariser(context, budget.on_thread(state, "summarise"), roles, state=state)


async def _summarised(load: Load, eased: Eased, state: State, summariser: Summariser) -> Eased:
    """Replace what is older than the latest part by a summary, made of the last one and of it."""
    before = eased.compaction
    meant = summarised(load, before)
    if meant == before:
        return eased
    known, reached = (after(load.messages, c.summarised_through) for c in (before, meant))
    job = Job(
        messages=load.messages[known:reached],
        earlier=before.summary,
        goal=state.task.goal if state.task else "",
        room=int(SUMMARY * load.room),
        window=int(FITS * load.crowded.budget / load.crowded.factor),
    )
    text: str = await summariser.summary(job)
    return eased.tried("summarise", replace(meant, summary=text), load)


def _too_large(crowded: Crowded, cost: ContextCost, where: str) -> Failure:
    fixed, tools = ceil(crowded.fixed * crowded.factor), crowded.tools
    named = f"the prompt and {tools} tools" if tools else "the prompt"
    if fixed <= FITS * cost.budget:
        named, fixed = f"{named}, and the latest messages cut short", cost.after
    where += ", or show fewer tools" if tools else ""
    if crowded.refused:
        where = f"left after a refusal ({crowded.refused}): show fewer tools, or take another model"
    message = f"{named} take {fixed} of the {cost.budget} tokens {where}"
    return Failure(code="bad_request", node=crowded.node, message=message)
