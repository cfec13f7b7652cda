"""Telling that a task begins, or is taken up again."""

from daruma.state.events import TaskStarted
from daruma.state.task import Task


def task_started(task: Task) -> TaskStarted:
    """Build the event for a task."""
    return TaskStarted(task_id=task.id, mode=task.mode, goal=task.goal, workspace=task.workspace)
