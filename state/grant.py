"""A budget that was spent: which one, who was held up by it, and what became of that."""

from typing import Literal

from daruma.state.amounts import Amounts, Measure, Scope
from daruma.state.record import record

Paying = Literal["plan", "main", "verify", "reflect", "recovery"]
"""The nodes that look at the budget before they spend of it."""


@record
class Overrun:
    """A limit that is reached: of what, of the task or of its phase, and before which node."""

    node: Paying
    scope: Scope
    measure: Measure
    spent: float
    limit: float
    schema_version: int = 1


@record
class Grant:
    """What was said about an overrun: so much ``more``, or that it stops there."""

    node: Paying
    scope: Scope
    more: Amounts
    stopped: bool = False
    schema_version: int = 1
