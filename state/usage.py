"""What a model call cost, in tokens, and for whom it was made."""

from collections.abc import Iterable
from typing import Literal

from daruma.state.record import record

Role = Literal["main", "auxiliary", "fallback", "repair", "recovery", "reflect"]


@record
class Usage:
    """Tokens of one model call. ``role`` is the reason it was made for.

    ``agent`` and ``task`` name who asked, and for what, where it was not the agent's own work.
    """

    role: Role
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    agent: str = ""
    task: str = ""
    schema_version: int = 1


def usage_by_role(usages: Iterable[Usage]) -> dict[str, dict[str, int]]:
    """Sum calls and tokens by role: ``{"main": {"calls", "input_tokens", "output_tokens"}}``."""
    totals: dict[str, dict[str, int]] = {}
    for usage in usages:
        total = totals.setdefault(usage.role, {"calls": 0, "input_tokens": 0, "output_tokens": 0})
        total["calls"] += 1
        total["input_tokens"] += usage.input_tokens
        total["output_tokens"] += usage.output_tokens
    return totals
