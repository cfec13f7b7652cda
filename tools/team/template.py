"""What a team is: its experts, and what each is there for."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


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
    experts: tuple[Expert, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [each.name for each in self.experts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"experts there are twice: {', '.join(twice)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its experts."""
        return tuple(each.name for each in self.experts)

    def expert(self, name: str | None) -> Expert | None:
        """Return the expert of a name."""
        return next((each for each in self.experts if each.name == name), None)
