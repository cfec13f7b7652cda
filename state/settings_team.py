"""The settings of teams: where templates are found, and how many members work at a time."""

from pydantic import Field

from daruma.state.settings_section import Section


class Team(Section):
    """Who carries out the phases of a ``team_collab`` task."""

    template: str = Field(
        default="coding", description="Template of a task whose message names none."
    )
    folders: tuple[str, ...] = Field(
        default=(),
        description="Folders with templates of one's own, NAME.yaml; they go before built-in ones.",
    )
    max_parallel: int = Field(default=4, ge=1, description="Members that work at the same time.")
