"""What a model call cost, in tokens, and for whom it was made."""

from collections.abc import Iterable
from typing import Literal

from daruma.state.record import record

Role = Literal["main", "auxiliary", "fallback", "repair", "recovery", "reflect"]


@record
class Usage:
    """Tokens of one model call. ``role`` is the reason it was made for.

    ``agent`` and ``task`` name who asked, and for what, where it was not the agent's own work.
    ``cached_tokens`` are those of the input that the provider had kept. ``usd`` is what it cost by
    the prices of that day, None where nobody knew one: a later price list changes no history.
    """

    role: Role
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    agent: str = ""
    task: str = ""
    cached_tokens: int = 0
    usd: float | None = None
    schema_version: int = 1


def usage_by_role(usages: Iterable[Usage]) -> dict[str, dict[str, int | float]]:
    """Sum by role: ``{"main": {"calls", "input_tokens", "output_tokens", "usd"}}``.

    ``usd`` sums what has a price, and is left out where nothing has one.
    """
    totals: dict[str, dict[str, int | float]] = {}
    for usage in usages:
        total = totals.setdefault(usage.role, {"calls": 0, "input_tokens": 0, "output_tokens": 0})
        total["calls"] += 1
        total["input_tokens"] += usage.input_tokens
        total["output_tokens"] += usage.output_tokens
        if usage.usd is not None:
            total["usd"] = total.get("usd", 0) + usage.usd
    return totals
