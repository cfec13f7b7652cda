"""The settings of what comes after a failure: recovery, then emergency."""

from typing import Literal

from pydantic import Field

from daruma.state.failure import Code
from daruma.state.settings_section import Section


class Recovery(Section):
    """What is tried after a failure."""

    enabled: bool = Field(default=True, description="Try to overcome failures.")
    max_retries: int = Field(
        default=1, ge=0, description="Recoveries for one and the same failure."
    )
    observe_only: bool = Field(
        default=False, description="Do nothing; a failure goes on to emergency."
    )
    execute_above: float = Field(
        default=0.8, ge=0, le=1, description="Confidence to act without asking."
    )
    ask_above: float = Field(default=0.5, ge=0, le=1, description="Confidence to ask for approval.")
    wait_seconds: float = Field(
        default=2.0, ge=0, description="Wait before what failed is tried again; doubled each time."
    )


class EmergencyRule(Section):
    """What is told of failures of one code in place of what Daruma would tell; null: as it is."""

    retryable: bool | None = Field(default=None, description="Whether trying again may help.")
    suggestions: tuple[str, ...] | None = Field(
        default=None, description="What a person can do about it."
    )


class Emergency(Section):
    """How a failure that was not overcome is told."""

    enabled: bool = Field(
        default=True, description="Tell a failure as a structured error; else it is raised."
    )
    language: Literal["en", "zh"] = Field(default="en", description="Language of what is told.")
    rules: dict[Code, EmergencyRule] = Field(
        default={}, description="By error code: what is told in place of the built-in advice."
    )


class FallbackChain(Section):
    """The tiers behind a failure: recovery, then emergency."""

    enabled: bool = Field(default=True, description="Have these tiers at all; else failures raise.")
    recovery: Recovery = Recovery()
    emergency: Emergency = Emergency()

    @property
    def has_emergency(self) -> bool:
        """Whether a failure is told as a structured error, rather than raised."""
        return self.enabled and self.emergency.enabled
