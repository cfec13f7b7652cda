"""Whether the team that settings name could work: its file, its tool profiles, its models."""

from daruma.graph.models.errors import ModelUnavailable
from daruma.graph.models.names import meant_by
from daruma.state.settings import Settings
from daruma.state.settings.sections import Team
from daruma.tools.team.templates import template_named


def check_team(settings: Settings) -> None:
    """Look at the team of settings that ask for one; others cost nothing.

    One that a message names, ``@team:NAME``, is looked at when that message comes. Raises
    :class:`~daruma.tools.team.templates.TemplateRefused`, and
    :class:`~daruma.graph.models.errors.ModelUnavailable` for an expert's model that means nothing.
    """
    if settings.mode != "team_collab" and settings.team == Team():
        return
    template = template_named(None, settings.team, settings.tools)
    for expert in template.experts:
        try:
            if expert.model is not None:
                meant_by(expert.model, settings.llm.model_aliases)
        except ModelUnavailable as error:
            where = f"team template {template.name!r}, model of expert {expert.name!r}"
            raise ModelUnavailable(f"{where}: {error}") from error
