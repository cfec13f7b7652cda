"""What a task's record says of how it went: pure, by rule (EV-03)."""

from typing import Final

from daruma.state.channels import State
from daruma.state.experience import Experience
from daruma.state.status import Status
from daruma.tools.key_masking import without_keys
from daruma.tools.results import clean

LONGEST_GOAL: Final = 2000
"""Characters of a goal that are kept."""


def experience_of(state: State, status: Status, at: float) -> Experience:
    """Return what is kept of a task that ended, or was broken off, at ``at`` (Unix seconds).

    Raises LookupError for a state that has no task.
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
        lessons=state.lessons,
    )
