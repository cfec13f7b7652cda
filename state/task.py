"""The task: one user request, its mode, its limits, and how it can end."""

from typing import Literal

from daruma.state.mode import Mode
from daruma.state.record import record

# --- How a task, or a phase of one, can end (MO-08).

Status = Literal[
    "completed",
    "failed",
    "gave_up_after_reflections",
    "max_steps_exceeded",
    "budget_exceeded",
    "parked",
    "blocked",
    "cancelled",
]
"""Only ``completed`` counts as success, anywhere."""


# --- What a budget is of beside steps: tokens, money, time.

Measure = Literal["tokens", "usd", "seconds"]
Scope = Literal["task", "phase"]
WhenSpent = Literal["ask", "stop"]


@record
class Amounts:
    """So much of each, None for no limit; of a grant, None for nothing more."""

    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    schema_version: int = 1

    def of(self, measure: Measure) -> float | None:
        """Return the amount of one measure."""
        return {"tokens": self.tokens, "usd": self.usd, "seconds": self.seconds}[measure]


# --- The task: one user request, with everything that was settled about it at intake.


@record
class Limits:
    """How much of each budgeted kind of step may be spent: per phase, or per task without phases.

    ``turn`` bounds the ``think`` steps of the whole task (TL-16); None means no such bound.
    ``spend`` bounds what the whole task takes in tokens, money and time, ``spend_in_phase`` what
    each phase does; ``when_spent`` says what becomes of it then (BU-04).
    ``ask`` has a person asked where steps ran out (RE-03a).
    ``look`` bounds the planner's looks at each plan, ``replan`` how often the rest is planned anew.
    ``taken`` is what of them others have, and is not for this team member. None is nothing of it,
    and small: a task is written down with each of its calls.
    """

    think: int
    verify: int
    reflect: int
    reinjections: int = 1
    turn: int | None = None
    recoveries: int = 1
    spend: Amounts | None = None
    spend_in_phase: Amounts | None = None
    when_spent: WhenSpent = "ask"
    ask: bool = False
    look: int = 0
    replan: int = 0
    taken: Amounts | None = None
    taken_in_phase: Amounts | None = None
    schema_version: int = 1


@record
class Task:
    """One request on a thread. ``verify`` and ``review`` say whether those gates stand in its way.

    ``only_if_changed`` has its checks run only where it changed its workspace (MO-04). ``rubric``
    is what a judge holds the whole of its work against (VE-11).

    The limits are copied from the settings, so that a resumed or forked thread has the budget its
    own history says, whatever the settings are by then. ``expert`` names the team member whose task
    this is, ``role`` is what that one is told of its part. ``request`` is the id of the message
    that asked for it. ``memory_owner`` says whose memories it works with, ``experience_owner``
    whose experience; ``skills`` whether there were skills to be listed when it began. ``helps``
    says of a helper's (PL-08) whether it may change files.
    """

    id: str
    goal: str
    mode: Mode
    limits: Limits
    workspace: str | None = None
    template: str | None = None
    expert: str | None = None
    role: str = ""
    memory_owner: str = "default"
    experience_owner: str = "default"
    skills: bool = False
    verify: bool = False
    only_if_changed: bool = False
    rubric: tuple[str, ...] = ()
    review: bool = False
    started_at: float = 0.0
    request: str = ""
    helps: Literal["", "reads", "writes"] = ""
    schema_version: int = 1
