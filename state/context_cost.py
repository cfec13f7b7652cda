"""What it took to bring one request under its budget, and what that saved (CX-01)."""

from dataclasses import asdict
from typing import Any, Literal

from daruma.state.compaction import Asking
from daruma.state.record import record

Measure = Literal["memory", "prune", "shrink", "summarise", "cut"]
"""What can be done about a request that is too large, in this order."""

By = Literal["", "auxiliary", "main", "rules"]
"""Who made a summary; nobody where there was no need of one."""


@record
class ContextCost:
    """One compaction. ``before`` and ``after`` are tokens of the request that ``node`` makes.

    ``saved`` holds tokens by measure, ``messages`` how many were replaced by a summary, made ``by``
    whom. ``exact`` says that a tokenizer counted, else it is an estimate; ``refused`` that a
    provider had found the request too long.
    """

    node: Asking
    budget: int
    before: int
    after: int
    saved: dict[Measure, int]
    messages: int = 0
    by: By = ""
    exact: bool = False
    refused: bool = False
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        plain = asdict(self)
        plain.pop("schema_version")
        return plain
