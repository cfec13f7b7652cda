"""Which ended tasks are learned from (EV-01): the same ones, however often it is asked."""

from typing import Final

from daruma.state.digest import LENGTH, digest
from daruma.state.experience import Experience

_RANGE: Final = float(16**LENGTH)


def is_sampled(experience: Experience, rate: float) -> bool:
    """Whether a task is learned from; of those that simply went well, a part: from 0 to 1.

    Each that did not complete is. So is each that was given lessons, or tried something against a
    failure (RE-08): whether these help could not be told from failures alone.
    """
    taught = experience.lessons is not None and experience.lessons.given
    telling = not experience.completed or taught or bool(experience.tried)
    return telling or _lot(experience.task_id) < rate


def _lot(task_id: str) -> float:
    """Return a number from 0 up to 1 that is always the same for a task."""
    return int(digest(["sampled", task_id]), 16) / _RANGE
