"""How far a task has come: an estimate by rule, for whoever has to decide how to go on (RE-01)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.mode import KEEP_WORKING
from daruma.state.observed import observed
from daruma.state.rounds import attempt, rounds
from daruma.state.step import Step
from daruma.state.stuckness import is_stuck, news

_WORK = 0.6
"""The most that steps alone can show of a phase: checks tell what they were worth."""
_CHECKED = 0.9
"""What a phase has come to when all but the last of its checks pass."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """An estimate: ``percent`` is from 0 to 100, ``reasoning`` says what it was made of.

    ``blockers`` are at most three errors that stand in the way, ``is_stuck`` is true where the
    last three steps brought nothing new, and for a loop.
    """

    percent: int
    reasoning: str
    next_milestone: str
    blockers: tuple[str, ...] = ()
    is_stuck: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return asdict(self) | {"blockers": list(self.blockers)}


def progress_of(state: State) -> Progress:
    """Estimate the progress from the plan, the last verification and the record of steps.

    The percentage is that of completed phases (a task without a plan is one phase), and of the
    phase at hand its share: 100 % when its verification passed, else the greater of 60 % times
    steps that brought something new by the quota of thinks, and 90 % times checks that passed by
    checks that were run.
    """
    steps = list(budget.in_scope(state))
    latest = observed(state)
    now = Step(kind="think", task_id=state.task_id, saw=latest.saw)
    fresh = news(rounds(steps, now))
    looping = state.failure is not None and state.failure.code == "loop_detected"
    return Progress(
        percent=_percent(state, sum(fresh)),
        reasoning=_reasoning(state, fresh),
        next_milestone=_milestone(state),
        blockers=(state.failure.message,) if state.failure and looping else latest.blockers,
        is_stuck=looping or is_stuck(rounds(attempt(steps), now)),
    )


def _percent(state: State, fresh: int) -> int:
    phases = state.plan.phases if state.plan else ()
    completed = sum(phase.status == "completed" for phase in phases)
    current = state.plan.phase(state.plan.current) if state.plan else None
    open_ = state.plan is None or (current is not None and current.status == "running")
    share = _share(state, fresh) if open_ else 0.0
    return int(100 * (completed + share) / max(1, len(phases)))


def _share(state: State, fresh: int) -> float:
    checked = state.verification
    if checked and checked.passed:
        return 1.0
    quota = state.task.limits.think if state.task else 0
    work = _WORK * min(1.0, fresh / max(1, quota))
    checks = checked.checks if checked else ()
    return max(work, _CHECKED * sum(check.passed for check in checks) / max(1, len(checks)))


def _reasoning(state: State, fresh: Sequence[bool]) -> str:
    said = []
    if state.plan:
        completed = sum(phase.status == "completed" for phase in state.plan.phases)
        said.append(f"{completed} of {len(state.plan.phases)} phases are completed")
    said.append(f"{sum(fresh)} of {len(fresh)} steps brought something new")
    if state.verification:
        said.append(f"the last verification: {state.verification.summary}")
    return "; ".join(said)


def _milestone(state: State) -> str:
    if state.verification and not state.verification.passed:
        red = next(check for check in state.verification.checks if not check.passed)
        return f"{red.command} passes"
    current = state.plan.phase(state.plan.current) if state.plan else None
    if current and current.status == "running":
        return f"the phase {current.title!r} is completed"
    if state.plan is None and state.task and state.task.mode in KEEP_WORKING:
        return "a plan"
    return "an answer"
