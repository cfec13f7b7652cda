"""What an expert changes of the settings that a task runs under."""

from daruma.state.settings import Settings
from daruma.tools.team.template import Expert


def settings_of(expert: Expert | None, settings: Settings) -> Settings:
    """Return the settings that a member runs under: with its own model and tool profile."""
    if expert is None:
        return settings
    llm, tools = settings.llm, settings.tools
    if expert.model:
        llm = llm.model_copy(update={"model": expert.model})
    if expert.profile:
        tools = tools.model_copy(update={"profile": expert.profile})
    return settings.model_copy(update={"llm": llm, "tools": tools})
