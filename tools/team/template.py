"""What a team is: its experts, and what each is there for."""

from pydantic import BaseModel, ConfigDict, Field


class Expert(BaseModel):
    """One member of a team.

    ``prompt`` is what the member is told of its part; ``model`` a model's name or alias, None for
    the main one; ``profile`` one of the tool profiles, None for that of the settings.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*$")
    about: str = Field(min_length=1, description="What it is for, in a line: planning reads it.")
    prompt: str = ""
    model: str | None = None
    profile: str | None = None


class Template(BaseModel):
    """A team that a task can be given to, as ``@team:NAME``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str = ""
    experts: tuple[Expert, ...]

    def expert(self, name: str | None) -> Expert | None:
        """Return the expert of a name."""
        return next((each for each in self.experts if each.name == name), None)
