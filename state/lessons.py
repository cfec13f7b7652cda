"""What is kept of a task to learn from, and what a later one is given of it (EV-05)."""

from typing import Any, Literal

from daruma.state.failure import ChosenBy, Strategy
from daruma.state.mode import Mode
from daruma.state.record import plain_values, record
from daruma.state.task import Status

# --- What was recalled for a task when it began: it stays the same until the task ends (CX-05).


@record
class Remembered:
    """One memory. ``role`` is empty for the common ones; ``at`` is Unix time in seconds."""

    id: str
    text: str
    section: str = ""
    role: str = ""
    at: float = 0.0
    schema_version: int = 1


@record
class Recalled:
    """The memories that fit a task best, best first; ``note`` says why there are none, if any."""

    task_id: str
    memories: tuple[Remembered, ...] = ()
    note: str = ""
    schema_version: int = 1


# --- What a repository says to whoever works in it, read when the task begins (FA-12).


@record
class Instructions:
    """Files of a repository, the nearest to the workspace first; ``files`` has texts by paths.

    ``unread`` says which could not be read, and why.
    """

    task_id: str
    files: dict[str, str]
    unread: tuple[str, ...] = ()
    schema_version: int = 1

    @property
    def note(self) -> str:
        """Say which files the model was shown, and which not."""
        shown = ", ".join(self.files) or "nothing"
        return "; ".join((f"the repository's instructions: {shown}", *self.unread))


# --- What earlier tasks have taught, as it is fed back into a task: settled when the task begins.

Place = Literal["system", "plan"]
"""The end of main's system prompt, or of the planner's."""


@record
class KnownPitfall:
    """What went wrong before in tasks like this one. ``tasks`` is how many it was seen in.

    ``actor`` is who it happened to: ``main``, ``plan`` or the name of an expert. ``confidence`` is
    from 0 to 1.
    """

    id: str
    text: str
    advice: str = ""
    actor: str = "main"
    tasks: int = 1
    confidence: float = 0.0
    schema_version: int = 1


@record
class Instruction:
    """A learned addition to a prompt. In the ``control`` arm of its test the text is empty.

    ``actor`` is whose prompt it is for: ``main``, ``plan`` or the name of an expert.
    """

    variant: str
    actor: str
    place: Place
    text: str = ""
    arm: Literal["variant", "control", "promoted"] = "promoted"
    schema_version: int = 1


@record
class Lessons:
    """The lessons that a task is given; ``note`` says why none could be looked up, if so."""

    task_id: str
    pitfalls: tuple[KnownPitfall, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    note: str = ""
    schema_version: int = 1

    @property
    def given(self) -> bool:
        """Whether the task was given anything, and be it the control arm of a test."""
        return bool(self.pitfalls or self.instructions)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        pitfalls = [plain_values(each) for each in self.pitfalls]
        return {"pitfalls": pitfalls, "instructions": [*map(plain_values, self.instructions)]}


# --- What a task would have been given, had learning not only been observing.


@record
class WouldHave:
    """The lessons that a task would have been given, and what would have been tried for it.

    ``actions`` are the learned actions against failures that the task had, one line each.
    """

    lessons: Lessons
    actions: tuple[str, ...] = ()
    schema_version: int = 1

    @property
    def anything(self) -> bool:
        """Whether anything would have been fed back."""
        return self.lessons.given or bool(self.actions)


# --- What is kept of an ended task to learn from: its outcome, and what went wrong on the way.
#
# It is JSON-able, bounded, without keys, and all that evolution works on.

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
    "cancelled" stands for a run that was broken off. ``checked`` says that its checks passed.
    """

    task_id: str
    owner: str
    mode: Mode
    status: Status
    goal: str
    at: float
    checked: bool = False
    skills: tuple[str, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    tried: tuple[Tried, ...] = ()
    lessons: Lessons | None = None
    would_have: WouldHave | None = None
    reflected: bool = False
    schema_version: int = 1

    @property
    def completed(self) -> bool:
        """Whether the task succeeded: only one that was checked is known to have (MO-10)."""
        return self.status == "completed" and self.checked

    @property
    def countable(self) -> bool:
        """Whether the outcome says anything of how the work was done.

        What was broken off, waits for a person, fell to something passing, or was not checked
        does not.
        """
        ended = [each for each in self.setbacks if each.ended]
        fell = bool(ended) and all(each.passing for each in ended)
        told = self.completed or self.status not in ("completed", "cancelled", "parked", "blocked")
        return told and not fell


# --- A pitfall: what went wrong in earlier tasks, and what speaks for it (EV-03, EV-04).

Level = Literal["low", "medium", "high"]
"""Less sure than it has to be; sure, but it was overcome; sure, and tasks failed by it."""


@record
class Pitfall:
    """One pitfall of an owner's, for one actor. ``text`` and ``advice`` are one line each.

    ``goals`` are the newest different ones of the tasks that it was seen in, ``skills`` what these
    had loaded. ``tasks`` counts the tasks that it was seen in, ``clear`` those alike that went well
    without being told of it, ``avoided``, ``repeated`` and ``in_vain`` those that were told: they
    went well, met it again, or fell to something else. ``confidence`` is
    from 0 to 1, as of ``last_at``, which is when it was last seen: Unix time in seconds.
    """

    id: str
    owner: str
    actor: str
    kind: SetbackKind
    signature: str
    text: str
    advice: str = ""
    goals: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    tasks: int = 1
    clear: int = 0
    avoided: int = 0
    repeated: int = 0
    in_vain: int = 0
    confidence: float = 0.0
    level: Level = "low"
    first_at: float = 0.0
    last_at: float = 0.0
    shared: bool = False
    schema_version: int = 1
