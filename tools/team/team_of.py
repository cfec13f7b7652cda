"""The team that a task was given to."""

from daruma.state.settings import Settings
from daruma.state.task import Task
from daruma.tools.files.threads import in_thread
from daruma.tools.team.template import Template
from daruma.tools.team.templates import template_named


async def team_of(task: Task | None, settings: Settings) -> Template | None:
    """Return the team of a task in ``team_collab``, None in other modes.

    Raises :class:`~daruma.tools.team.template_file.TemplateRefused`: files may have changed.
    """
    if task is None or task.mode != "team_collab":
        return None
    return await in_thread(template_named, task.template, settings.team, settings.tools)
