"""What is kept of an ended task to learn from: its outcome, and what went wrong on the way.

It is JSON-able, bounded, without keys, and all that evolution works on.
"""

from typing import Literal

from daruma.state.lessons import Lessons
from daruma.state.mode import Mode
from daruma.state.record import record
from daruma.state.recovery import ChosenBy, Strategy
from daruma.state.status import Status
from daruma.state.would_have import WouldHave

SetbackKind = Literal["failure", "check", "tool", "loop", "person"]
"""A failure of the machine, red checks, a tool's errors, a loop, or what a person rejected."""


@record
class Setback:
    """One thing that went wrong. ``signature`` is equal for what is the same thing again.

    ``actor`` is who it happened to: ``main``, ``plan`` or the name of an expert. ``text`` is one
    line on what went wrong, ``advice`` one on what to do differently, empty where nobody knows.
    ``ended`` says that the task, or a phase of it, failed by it. ``passing`` marks what says
    nothing of how the work was done: a provider's outage, a lost database, a full disk.
    """

    kind: SetbackKind
    actor: str
    signature: str
    text: str
    advice: str = ""
    tool: str = ""
    ended: bool = False
    passing: bool = False
    schema_version: int = 1


@record
class Tried:
    """An action that was taken against a failure of a signature, and whether it worked (RE-08).

    ``asked`` says that a person had to agree to it.
    """

    actor: str
    signature: str
    strategy: Strategy
    by: ChosenBy
    worked: bool
    asked: bool = False
    tool: str = ""
    instead: str = ""
    reasoning: str = ""
    schema_version: int = 1


@record
class Experience:
    """One ended task. ``owner`` is whose experience it is: a workspace, or a named project.

    ``at`` is when it ended, Unix time in seconds. ``skills`` are those that it had loaded,
    ``lessons`` what it was given, ``would_have`` what it would have been given had learning not
    only been observing. ``reflected`` says that this, and a model's advice, is settled. ``status``
    "cancelled" stands for a run that was broken off.
    """

    task_id: str
    owner: str
    mode: Mode
    status: Status
    goal: str
    at: float
    skills: tuple[str, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    tried: tuple[Tried, ...] = ()
    lessons: Lessons | None = None
    would_have: WouldHave | None = None
    reflected: bool = False
    schema_version: int = 1

    @property
    def completed(self) -> bool:
        """Whether the task succeeded."""
        return self.status == "completed"

    @property
    def countable(self) -> bool:
        """Whether the outcome says anything of how the work was done.

        What was broken off, waits for a person, or fell to something passing does not.
        """
        ended = [each for each in self.setbacks if each.ended]
        fell = bool(ended) and all(each.passing for each in ended)
        return self.status not in ("cancelled", "parked", "blocked") and not fell
