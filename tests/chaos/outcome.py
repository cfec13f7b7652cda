"""How a run is judged: by its answer, not by what it says of itself."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["right", "wrong", "failed", "raised"]
"""Wrong is to have said success without the right answer; failed and raised are honest."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task; ``reason`` says why it did not become right."""

    verdict: Verdict
    reason: str = ""


def judged(answer: str, right: str) -> Outcome:
    """Judge what was given as a success."""
    return Outcome("right") if answer == right else Outcome("wrong", f"answered {answer[:60]!r}")


def raised(error: Exception) -> Outcome:
    """Judge a run that ended with an exception."""
    return Outcome("raised", f"{type(error).__name__}: {str(error)[:80]}")
