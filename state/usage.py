"""What requests to models took: tokens, and requests that failed (TL-17)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from daruma.state.record import plain_values, record

# --- What a provider told of tokens, read as counts (BU-05). Pure.

MOST_TOKENS: Final = 10**12
"""A count beyond that is none: no model reads or writes so much in one call."""


def read_count(told: object) -> int | None:
    """Return a number of tokens as a count; None for what is none, which is as good as not told.

    Some servers send it as text, or as `12.0`.
    """
    if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) <= len("1" * 13):
        told = int(told)
    if isinstance(told, float) and told.is_integer():
        told = int(told)
    return told if type(told) is int and 0 <= told <= MOST_TOKENS else None  # no bool


def sound_usage(told: object) -> dict[str, Any]:
    """Return what was told of tokens, in the shape of any provider, without what is no count."""
    sound: dict[str, Any] = {}
    for name, value in told.items() if isinstance(told, Mapping) else ():
        if name.endswith("_details"):
            parts = value.items() if isinstance(value, Mapping) else ()
            counts = {part: read_count(each) for part, each in parts}
            sound[name] = {part: count for part, count in counts.items() if count is not None}
        elif (kept := read_count(value) if name.endswith("_tokens") else value) is not None:
            sound[name] = kept
    return sound


# --- What a model call cost, in tokens, and for whom it was made.

Role = Literal["main", "auxiliary", "fallback", "repair", "recovery", "reflect", "judge"]


@record
class Usage:
    """Tokens of one model call. ``role`` is the reason it was made for.

    ``agent`` and ``task`` name who asked, and for what, where it was not the agent's own work.
    ``cached_tokens`` are those of the input that the provider had kept, ``cache_write_tokens``
    those that it keeps from now on, where that has a price (CX-07). ``usd`` is what it cost by
    the prices of that day, None where nobody knew one: a later price list changes no history.
    ``estimated`` marks tokens that the provider did not tell, and that were counted here (BU-05).
    """

    role: Role
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    agent: str = ""
    task: str = ""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = None
    estimated: bool = False
    schema_version: int = 1


def usage_by_role(usages: Iterable[Usage]) -> dict[str, dict[str, int | float]]:
    """Sum by role: ``{"main": {"calls", "input_tokens", "output_tokens", "usd"}}``.

    ``usd`` sums what has a price, and is left out where nothing has one; so are ``cached_tokens``,
    ``cache_write_tokens``, and ``estimated``, the number of calls whose tokens were counted here.
    """
    totals: dict[str, dict[str, int | float]] = {}
    for usage in usages:
        total = totals.setdefault(usage.role, {"calls": 0, "input_tokens": 0, "output_tokens": 0})
        total["calls"] += 1
        total["input_tokens"] += usage.input_tokens
        total["output_tokens"] += usage.output_tokens
        for cache in ("cached_tokens", "cache_write_tokens"):
            if tokens := getattr(usage, cache):
                total[cache] = total.get(cache, 0) + tokens
        if usage.usd is not None:
            total["usd"] = total.get("usd", 0) + usage.usd
        if usage.estimated:
            total["estimated"] = total.get("estimated", 0) + 1
    return totals


# --- What it took to get a model's answer: the requests that failed, and who answered (TL-17).


@record
class Attempt:
    """One request that brought no answer: its HTTP ``status`` if it had one, how long it took.

    ``then`` says what was done about it: "again", "next model" or "gave up". ``usage`` is what it
    was charged for all the same, as an answer that came and could not be used; None if nobody said.
    """

    model: str
    error: str
    then: str
    status: int | None = None
    seconds: float = 0.0
    usage: Usage | None = None
    schema_version: int = 1


@record
class Failover:
    """One call: the model that was meant, the one that answered (empty: none), what failed."""

    requested: str
    used: str = ""
    attempts: tuple[Attempt, ...] = ()
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return plain_values(self)
