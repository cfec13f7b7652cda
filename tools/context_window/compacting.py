"""Bringing one request under its budget: the measures in their order, and what came of them."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from daruma.state import budget, phases
from daruma.state.channels import State
from daruma.state.compaction import Compaction, Crowded
from daruma.state.context_cost import ContextCost
from daruma.state.failure import Failure
from daruma.tools.context import Context
from daruma.tools.context_window.draft import limit_named
from daruma.tools.context_window.measures import (
    FITS,
    SUMMARY,
    Eased,
    Load,
    cut,
    summarised,
    without_model,
)
from daruma.tools.context_window.summarising import Call, Job, Role, Summariser
from daruma.tools.context_window.view import after

LADDER: Final[dict[bool, list[Role]]] = {True: ["auxiliary", "main"], False: ["main"]}
"""Who is asked for a summary, by whether the auxiliary model is one of its own (CX-02, CX-03)."""


@dataclass(frozen=True)
class Compacted:
    """How the history is shown from now on, at what cost, and by which calls to models."""

    compaction: Compaction
    cost: ContextCost
    calls: tuple[Call, ...]
    failure: Failure | None


async def compacted(state: State, crowded: Crowded, context: Context) -> Compacted:
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
    return Compacted(eased.compaction, cost, tuple(summariser.calls), failure)


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
