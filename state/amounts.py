"""What a budget is of beside steps: tokens, money, time."""

from typing import Literal

from daruma.state.record import record

Measure = Literal["tokens", "usd", "seconds"]
Scope = Literal["task", "phase"]
WhenSpent = Literal["ask", "stop"]


@record
class Amounts:
    """So much of each, None for no limit; of a grant, None for nothing more."""

    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    schema_version: int = 1

    def of(self, measure: Measure) -> float | None:
        """Return the amount of one measure."""
        return {"tokens": self.tokens, "usd": self.usd, "seconds": self.seconds}[measure]
