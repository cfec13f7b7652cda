"""What an expert changes of the settings that a task runs under."""

from daruma.tools.team.templates import template_named

from daruma.state.plan import Phase
from daruma.state.settings import Settings
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.team.template import Expert


def expert_of(task: Task, phase: Phase, context: Context) -> Expert | None:
    """Return the expert that a phase names, as the task's template has it."""
    return template_named(task.template, context.settings.team).expert(phase.expert)


def settings_of(task: Task, phase: Phase, context: Context) -> Settings:
    """Return the settings that a member runs under: its own model and tool profile."""
    settings, expert = context.settings, expert_of(task, phase, context)
    if expert is None:
        return settings
    llm = settings.llm.model_copy(update={"model": expert.model}) if expert.model else settings.llm
    tools = settings.tools
    if expert.profile:
        tools = tools.model_copy(update={"profile": expert.profile})
    return settings.model_copy(update={"llm": llm, "tools": tools})
