"""The small values that tests of prompts' variants are made of."""

from typing import Any

from daruma.state.lessons import Experience, Instruction, Lessons
from daruma.state.task import Status
from daruma.tools.evolution import Variant
from daruma.tools.evolution._variants import Status as VariantStatus
from daruma.tools.evolution._variants import place_of


def a_variant(
    id_: str = "v", status: VariantStatus = "testing", actor: str = "main", **changes: Any
) -> Variant:
    """A variant of the owner ``o`` that advises to read first, unless told otherwise."""
    given: dict[str, Any] = {"owner": "o", "text": "Read it first.", "advice": "Read it first."}
    return Variant(id=id_, status=status, actor=actor, place=place_of(actor), **(given | changes))


def an_ended(task: str, status: Status = "completed", **changes: Any) -> Experience:
    """A task of the owner ``o`` that ended at 1 s, unless told otherwise."""
    given: dict[str, Any] = {"owner": "o", "mode": "react", "goal": "g", "at": 1.0}
    given |= {"checked": True} | changes
    return Experience(task_id=task, status=status, **given)


def given_to(task: str, arm: Any, *, variant: str = "v") -> Lessons:
    """The lessons of a task that was in an arm of a variant's comparison."""
    text = "" if arm == "control" else "Read it first."
    one = Instruction(variant=variant, actor="main", place="system", text=text, arm=arm)
    return Lessons(task_id=task, instructions=(one,))
