"""Whether a learned instruction helps: which tasks are given it, and what their outcomes say.

A task's arm depends on the task and the variant alone. The outcomes are looked at at fixed sizes
only, so that looking often can not find what is not there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from daruma.state.digest import LENGTH, digest
from daruma.state.record import record
from daruma.tools.evolution.fisher import chance_of_better

Arm = Literal["variant", "control", "promoted"]

LOOKS: Final = (20, 40, 80, 160)
"""Outcomes per arm at which a test is looked at; the last one ends it."""
CONTROL_LOOKS: Final = (5, 10, 20, 40)
"""Outcomes without it at which one that is in use is looked at: nine times as many have it."""
ALPHA: Final = 0.05
"""The chance at most that one which does nothing is promoted, shared evenly by the looks."""
CONTROL_SHARE: Final = 0.1
"""The part of the tasks that goes on without an instruction that is in use."""

Verdict = Literal["better", "worse", "no difference"]


@record
class Outcome:
    """How one task ended, and whether it was given the variant. ``at`` is Unix time in seconds."""

    task_id: str
    variant: str
    arm: Arm
    ok: bool
    at: float
    schema_version: int = 1

    @property
    def treated(self) -> bool:
        """Whether the instruction stood in the task's prompt."""
        return self.arm != "control"


@dataclass(frozen=True)
class Decision:
    """What a look at the outcomes came to, why, and as of when (of the outcomes: no clock)."""

    verdict: Verdict
    why: str
    at: float


def arm_of(variant: str, task_id: str, *, promoted: bool) -> Arm:
    """Return the arm of a task: half and half in a test, one in ten without it later."""
    share = int(digest([variant, task_id]), 16) / 16**LENGTH
    if promoted:
        return "control" if share < CONTROL_SHARE else "promoted"
    return "variant" if share < 0.5 else "control"


def decision(outcomes: Sequence[Outcome]) -> Decision | None:
    """Return what the outcomes of a test say; None while it has to go on.

    At each look the first so many outcomes of each arm are compared, by time. It is better, or
    worse, where the one-sided exact test says so at ``ALPHA`` over the number of looks.
    """
    treated, control = _arms(outcomes)
    for size in LOOKS:
        if min(len(treated), len(control)) < size:
            return None
        found = _look(treated[:size], control[:size])
        if found.verdict != "no difference" or size == LOOKS[-1]:
            return found
    return None


def setback_in_use(outcomes: Sequence[Outcome]) -> Decision | None:
    """Return what is said of one in use since it was last reviewed; None while it goes on.

    The looks are at fixed numbers of tasks without it, with all that had it until then. After the
    last look the review is over ("no difference"), and the next one begins with newer outcomes.
    """
    treated, control = _arms(outcomes)
    for size in CONTROL_LOOKS:
        if len(control) < size:
            return None
        until = control[size - 1]
        since = [each for each in treated if _order(each) <= _order(until)]
        found = _look(since, control[:size])
        if found.verdict == "worse" or size == CONTROL_LOOKS[-1]:
            return found
    return None


def _arms(outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    ordered = sorted(outcomes, key=_order)
    return [o for o in ordered if o.treated], [o for o in ordered if not o.treated]


def _order(outcome: Outcome) -> tuple[float, str]:
    return outcome.at, outcome.task_id


def _look(treated: Sequence[Outcome], control: Sequence[Outcome]) -> Decision:
    wins, others = sum(o.ok for o in treated), sum(o.ok for o in control)
    up = chance_of_better(wins, len(treated), others, len(control))
    down = chance_of_better(others, len(control), wins, len(treated))
    threshold = ALPHA / len(LOOKS)
    verdict: Verdict = (
        "better" if up < threshold else "worse" if down < threshold else "no difference"
    )
    told = f"{wins} of {len(treated)} succeeded with it, {others} of {len(control)} without"
    why = f"{verdict}: {told} (p {min(up, down):.4f}, threshold {threshold})"
    return Decision(verdict, why, max(o.at for o in (*treated, *control)))
