"""What one task says of a group of pitfalls: the facts that pitfalls are summed up from."""

from collections.abc import Iterable
from typing import Any, Final, Literal

from langgraph.store.base import Item
from pydantic import TypeAdapter, ValidationError

from daruma.state.digest import digest
from daruma.state.experience import Experience, Setback, SetbackKind
from daruma.state.record import record
from daruma.tools.evolution.kept_text import kept_line

How = Literal["failed", "clear", "avoided", "repeated", "in_vain"]
"""It was seen; an alike task went well untold; one that was told went well; it was seen, told; one
that was told fell to something else."""

SEEN: Final = ("failed", "repeated")

_LONGEST_GOAL: Final = 500


@record
class Evidence:
    """What a task says of the pitfalls of one actor and signature: one fact for each task.

    ``at`` is Unix time in seconds, ``pitfall`` the id of the one that the task was told of.
    """

    task: str
    how: How
    at: float
    owner: str
    actor: str
    signature: str
    goal: str
    kind: SetbackKind
    text: str = ""
    advice: str = ""
    ended: bool = False
    skills: tuple[str, ...] = ()
    pitfall: str = ""
    schema_version: int = 1

    @property
    def seen(self) -> bool:
        """Whether the task met the pitfall."""
        return self.how in SEEN

    @property
    def grave(self) -> bool:
        """Whether the task, or a phase, fell to it, or a person objected."""
        return self.seen and (self.ended or self.kind == "person")

    @property
    def group(self) -> str:
        """The group of pitfalls that it is about."""
        return group_of(self.owner, self.actor, self.signature)

    @property
    def key(self) -> str:
        """The key that it is kept under."""
        return digest(self.task)


EVIDENCE: TypeAdapter[Evidence] = TypeAdapter(Evidence)


def group_of(owner: str, actor: str, signature: str) -> str:
    """Return the name of all pitfalls of an actor and a signature, whatever the goals."""
    return digest([owner, actor, signature])[:12]


def seen_in(setback: Setback, experience: Experience) -> Evidence:
    """Return the fact that a task met a setback."""
    group = group_of(experience.owner, setback.actor, setback.signature)
    told = [each.id for each in told_of(experience) if each.id.startswith(f"{group}-")]
    return Evidence(
        task=experience.task_id,
        how="repeated" if told else "failed",
        at=experience.at,
        owner=experience.owner,
        actor=setback.actor,
        signature=setback.signature,
        goal=goal_of(experience),
        kind=setback.kind,
        text=kept_line(setback.text),
        advice=kept_line(setback.advice),
        ended=setback.ended,
        skills=experience.skills,
        pitfall=told[0] if told else "",
    )


def told_of(experience: Experience) -> Iterable[Any]:
    """Return the pitfalls that a task was told of."""
    return experience.lessons.pitfalls if experience.lessons else ()


def goal_of(experience: Experience) -> str:
    """Return a task's goal as it is kept with what is learned from it."""
    return kept_line(experience.goal, _LONGEST_GOAL)


def evidence_in(items: Iterable[Item], namespace: tuple[str, ...]) -> list[Evidence]:
    """Return the facts that a namespace's items hold, the oldest first; others are skipped."""
    found = []
    for item in items:
        if item.namespace != namespace:
            continue
        try:
            found.append(EVIDENCE.validate_python(item.value))
        except ValidationError:
            continue
    return sorted(found, key=lambda each: (each.at, each.task))
