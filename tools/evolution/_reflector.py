"""How a task went, and which tasks are learned from, by rule (EV-01, EV-03)."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from daruma.state.budget import ended_with, of_task, outcomes
from daruma.state.channels import State
from daruma.state.lessons import Experience, Setback, Tried
from daruma.state.outcome import checked_of
from daruma.state.progress import tools_in
from daruma.state.recovery import DONE
from daruma.state.steps import Step
from daruma.state.task import Status
from daruma.state.text import LENGTH, digest, storable_text
from daruma.tools.evolution._setbacks import (
    NOT_RUN,
    PASSING,
    actor_of,
    in_the_way,
    kind_of,
    list_endings,
    list_failed_checks,
    list_loaded_skills,
    list_refused_plans,
    list_rejections,
    list_tool_errors,
    make_signature,
    telling_line,
)
from daruma.tools.evolution._text import storable_line
from daruma.tools.text import without_keys

# --- Setbacks and recoveries that the record of steps tells of, those of team members too. Pure.

_UNUSABLE = "the model"
"""How what was wrong with an answer that came begins; else a model was not heard."""


def list_tried(state: State) -> Iterator[Tried]:
    """Yield the actions that were done against failures, each with whether it worked (RE-08)."""
    steps = [step for step in of_task(state) if step.recovery]
    for step, told in zip(steps, outcomes(of_task(state), ended_with(state)), strict=True):
        if told.carried in DONE and step.signature:
            yield Tried(
                actor=_actor(state, step),
                signature=_signature(step),
                strategy=told.strategy,
                by=told.by,
                worked=bool(told.worked),
                asked=told.carried == "approved",
                tool=told.tool or told.hides,
                instead=told.instead,
                reasoning=storable_line(told.reasoning),
            )


def list_recovered(state: State) -> Iterator[Setback]:
    """Yield the failures that recovery dealt with; what worked against them is the advice."""
    worked = {each.signature: _advice(each) for each in list_tried(state) if each.worked}
    steps = of_task(state)
    for number, step in enumerate(steps):
        if step.recovery is None or step.signature.count(":") < 2:
            continue
        node, code, told = step.signature.split(":", 2)
        said = in_the_way(code, [s for s in steps[:number] if s.phase_id == step.phase_id])
        unheard = code in ("timeout", "llm_failure") and not told.startswith(_UNUSABLE)
        yield Setback(
            kind=kind_of(code),
            actor=_actor(state, step),
            signature=make_signature(step.signature, *said),
            text=storable_line(": ".join((f"{code} in {node}", told, *said))),
            advice=worked.get(_signature(step), ""),
            tool=step.recovery.tool or step.recovery.hides,
            passing=unheard or code in PASSING or node == "intake",
        )


def list_member_errors(state: State) -> Iterator[Setback]:
    """Yield the errors that a team member was shown again: its messages are not the task's."""
    seen: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for phase in state.plan.phases if state.plan else ():
        actor = actor_of(state, phase)
        thinks = [s for s in of_task(state) if s.phase_id == phase.id and s.kind == "think"]
        for before, after in pairwise(thinks if actor != "main" else ()):
            for blocker in (each for each in after.blockers if not each.startswith(NOT_RUN)):
                tool = "+".join(tools_in(before.signature))
                said = telling_line(blocker)
                seen[actor, tool, make_signature("tool", tool, said)].append(said)
    for (actor, tool, signature), errors in seen.items():
        if len(errors) > 1:
            text = storable_line(f"{tool}: {errors[0]}")
            yield Setback(kind="tool", actor=actor, signature=signature, text=text, tool=tool)


def _actor(state: State, step: Step) -> str:
    if step.signature.startswith("plan:"):
        return "plan"
    return actor_of(state, state.plan.phase(step.phase_id) if state.plan else None)


def _signature(step: Step) -> str:
    """Return the failure's own signature, as who looks for a recovery has it; without keys."""
    return without_keys(storable_text(step.signature))


def _advice(tried: Tried) -> str:
    """Say what worked, in words."""
    ways = {
        "retry": "try the same again",
        "alternative-tool": f"use {tried.instead or 'another tool'}"
        + (f" in place of {tried.tool}" if tried.tool else ""),
        "parameter-adjustment": "go another way",
        "escalate": "ask a person",
    }
    said = ways.get(tried.strategy, "")
    return storable_line(f"{said}: {tried.reasoning}" if said and tried.reasoning else said)


# --- What a task's record says of how it went: pure, by rule (EV-03).

_NUMBER: Final = re.compile(r"\d+")

LONGEST_GOAL: Final = 2000
"""Characters of a goal that are kept."""

MOST_SETBACKS: Final = 20
"""Setbacks of one task that are kept; those that it ended with before others."""
MOST_TRIED: Final = 50
"""Recoveries of one task that are kept."""
MOST_NUMBERS: Final = 5
"""Numbers of a goal that a signature has."""
MOST_SKILLS: Final = 10
"""Skills of one task that are kept."""


def experience_of(state: State, status: Status, at: float) -> Experience:
    """Return what is kept of a task that ended, or was broken off, at ``at`` (Unix seconds).

    It takes time in proportion to the task's messages and steps. Raises LookupError for a state
    that has no task.
    """
    task = state.task
    if task is None:
        raise LookupError("no task has begun: there is nothing to learn from")
    return Experience(
        task_id=task.id,
        owner=task.experience_owner,
        mode=task.mode,
        status=status,
        goal=without_keys(storable_text(task.goal))[:LONGEST_GOAL],
        at=at,
        checked=checked_of(state).outcome == "passed",
        skills=list_loaded_skills(state)[:MOST_SKILLS],
        setbacks=tuple(about(each, task.goal) for each in setbacks_of(state, status)),
        tried=tuple(list_tried(state))[:MOST_TRIED],
        lessons=state.lessons,
    )


def about(setback: Setback, goal: str) -> Setback:
    """Return a setback whose signature has the numbers that its task was about.

    Signatures have no numbers, as these are new each time; but what failed in the seventh module is
    not what failed in the eighth one.
    """
    of_goal = set(_NUMBER.findall(goal[:LONGEST_GOAL]))
    shared = sorted(of_goal.intersection(_NUMBER.findall(setback.text)))[:MOST_NUMBERS]
    if not shared:
        return setback
    return replace(setback, signature=f"{setback.signature} [{', '.join(shared)}]")


def setbacks_of(state: State, status: Status) -> tuple[Setback, ...]:
    """Return what went wrong in a task, each thing once, what it ended with first."""
    found = (
        *list_endings(state, status),
        *list_rejections(state),
        *list_failed_checks(state, status),
        *list_recovered(state),
        *list_tool_errors(state),
        *list_member_errors(state),
        *list_refused_plans(state),
    )
    kept: dict[tuple[str, str], Setback] = {}  # the first that knows a thing says it
    for each in found:
        before = kept.setdefault((each.actor, each.signature), each)
        ended, passing = before.ended or each.ended, before.passing and each.passing
        advice = before.advice or each.advice
        kept[each.actor, each.signature] = replace(
            before, ended=ended, passing=passing, advice=advice
        )
    return tuple(kept.values())[:MOST_SETBACKS]


# --- Which ended tasks are learned from (EV-01): the same ones, however often it is asked.

_RANGE: Final = float(16**LENGTH)


def is_sampled(experience: Experience, rate: float) -> bool:
    """Whether a task is learned from; of those that simply went well, a part: from 0 to 1.

    Each that did not complete is. So is each that was given lessons, or tried something against a
    failure (RE-08): whether these help could not be told from failures alone.
    """
    taught = experience.lessons is not None and experience.lessons.given
    telling = experience.status != "completed" or taught or bool(experience.tried)
    lot = int(digest(["sampled", experience.task_id]), 16) / _RANGE  # the same for a task, always
    return telling or lot < rate
