"""What it took to get a model's answer: the requests that failed, and who answered (TL-17)."""

from dataclasses import asdict
from typing import Any

from daruma.state.record import record
from daruma.state.usage import Usage


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
        plain = asdict(self)
        plain["attempts"] = [dict(each) for each in plain["attempts"]]
        for part in (plain, *plain["attempts"]):
            part.pop("schema_version")
        for part in plain["attempts"]:
            if part["usage"] is None:
                part.pop("usage")
            else:
                part["usage"].pop("schema_version")
        return plain
