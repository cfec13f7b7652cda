"""What is put on record of a recovery, and told of it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from daruma.state.events import RecoveryCompleted
from daruma.state.failure import Failure
from daruma.state.recovery import DONE, Carried, Recovered, RecoveryAction
from daruma.tools.context import Context
from daruma.tools.recovery.choice import hides, tool_of

LONGEST_REASONING: Final = 300
"""Characters of an action's reasoning that stay on record."""


def recovered(
    action: RecoveryAction, failure: Failure, carried: Carried, names: Collection[str]
) -> Recovered:
    """Return the record of an action; ``names`` are the tools that are shown."""
    done = carried in DONE
    return Recovered(
        code=failure.code,
        strategy=action.strategy,
        by=action.by,
        carried=carried,
        confidence=action.confidence,
        tool=tool_of(action, failure) if done else "",
        hides=hides(action, failure, names) if done else "",
        instead=(action.tool_name or "") if done and action.strategy == "alternative-tool" else "",
        reasoning=action.reasoning[:LONGEST_REASONING],
    )


@contextmanager
def closed_on_bug(context: Context) -> Iterator[None]:
    """Close what recovery has opened when a bug ends it: nobody else will (PL-04)."""
    try:
        yield
    except Exception:
        context.emit(RecoveryCompleted(strategy="give-up", carried="failed"))
        raise
