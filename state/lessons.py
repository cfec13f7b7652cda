"""What earlier tasks have taught, as it is fed back into a task: settled when the task begins."""

from dataclasses import asdict
from typing import Any, Literal

from daruma.state.record import record

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
        pitfalls, instructions = map(asdict, self.pitfalls), map(asdict, self.instructions)
        return {
            "pitfalls": [_plain(each) for each in pitfalls],
            "instructions": [_plain(each) for each in instructions],
        }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != "schema_version"}
