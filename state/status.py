"""How a task, or a phase of one, can end (MO-08)."""

from typing import Literal

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
