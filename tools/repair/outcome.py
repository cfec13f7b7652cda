"""What becomes of arguments that were looked at for repair."""

from dataclasses import dataclass
from typing import Any, Literal

Problem = Literal["invalid_json", "too_large", "cut_off", "invalid_args"]


@dataclass(frozen=True)
class Repaired:
    """Arguments that are certain, and every rung that was used to get them, in order."""

    args: dict[str, Any]
    rungs: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """Why nothing is certain; ``reason`` is one line for the model."""

    problem: Problem
    reason: str


class Unreadable(Exception):
    """Raised by what reads a text that has no certain reading; its text says why."""


class CutOff(Unreadable):
    """Raised where a text ends before its end, though all of it fits so far."""
