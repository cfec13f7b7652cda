"""The commands that the work under a plan will be checked with, known before it is agreed to."""

from pathlib import Path

from langgraph.types import StateSnapshot

from daruma.state.settings import Settings
from daruma.tools.checks import recognised_commands


async def checks_ahead(snapshot: StateSnapshot, settings: Settings) -> tuple[str, ...]:
    """Return what is recognised in the workspace now, and what settings declare.

    Empty where no plan waits for a review, or nothing will be verified. The commands that a phase
    is checked with beside stand in the plan.
    """
    task = snapshot.values.get("task")
    waits = any(
        isinstance(each.value, dict) and each.value.get("type") == "spec_review_request"
        for each in snapshot.interrupts
    )
    if not waits or task is None or not task.verify or task.workspace is None:
        return ()
    try:
        found = await recognised_commands(Path(task.workspace))
    except OSError:  # what is wrong with the workspace is told where it is opened
        found = ()
    return tuple(dict.fromkeys((*found, *settings.verification.commands)))
