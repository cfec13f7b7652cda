"""What a task's record says of how it went: pure, by rule (EV-03)."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from daruma.state.channels import State
from daruma.state.experience import Experience, Setback
from daruma.state.status import Status
from daruma.tools.evolution.of_failures import endings
from daruma.tools.evolution.of_messages import (
    checks_failed,
    plans_refused,
    rejected_by_person,
    skills_loaded,
    tools_failed,
)
from daruma.tools.evolution.of_steps import errors_of_members, recovered_from, tried_in
from daruma.tools.key_masking import without_keys
from daruma.tools.results import clean

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
        goal=without_keys(clean(task.goal))[:LONGEST_GOAL],
        at=at,
        skills=skills_loaded(state)[:MOST_SKILLS],
        setbacks=tuple(about(each, task.goal) for each in setbacks_of(state, status)),
        tried=tuple(tried_in(state))[:MOST_TRIED],
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
        *endings(state, status),
        *rejected_by_person(state),
        *checks_failed(state, status),
        *recovered_from(state),
        *tools_failed(state),
        *errors_of_members(state),
        *plans_refused(state),
    )
    return _each_once(found)[:MOST_SETBACKS]


def _each_once(found: Iterable[Setback]) -> tuple[Setback, ...]:
    """Bring together what is the same; the first that knows it says it."""
    kept: dict[tuple[str, str], Setback] = {}
    for each in found:
        before = kept.setdefault((each.actor, each.signature), each)
        ended, passing = before.ended or each.ended, before.passing and each.passing
        advice = before.advice or each.advice
        kept[each.actor, each.signature] = replace(
            before, ended=ended, passing=passing, advice=advice
        )
    return tuple(kept.values())
