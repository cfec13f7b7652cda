"""Seeing an action through: it is told, and done, looked at only, or left to a person."""

from daruma.state.channels import Update
from daruma.state.events import RecoveryChosen, RecoveryCompleted
from daruma.state.recovery import Carried, Recovered, RecoveryAction
from daruma.tools.context import Context
from daruma.tools.offer import offer_of
from daruma.tools.recovery.carrying_out import Case, carried_out, left_open
from daruma.tools.recovery.choice import with_assent
from daruma.tools.recovery.recording import recovered


def given_up(case: Case, action: RecoveryAction, context: Context) -> Update:
    """Give up, which nobody has to agree to: there is nothing left to try."""
    _tell(action, context)
    context.emit(RecoveryCompleted(strategy=action.strategy))
    return left_open(case)


async def handled(
    case: Case, action: RecoveryAction, context: Context
) -> tuple[Update, Recovered | None]:
    """Do an action, or only look on, or leave it to a person: then nothing is on record yet."""
    settings = context.settings.fallback_chain.recovery
    names = offer_of(case.state.task, context).names
    action = with_assent(action, settings)
    _tell(action, context)
    if action.assent and not settings.observe_only:
        return {"action": action, "origin": case.state.origin or case.failure}, None
    update = left_open(case)
    if not settings.observe_only:
        update = await carried_out(case, action, context)
    carried: Carried = "observed" if settings.observe_only else "executed"
    context.emit(RecoveryCompleted(strategy=action.strategy, carried=carried))
    return update, recovered(action, case.failure, carried, names)


def _tell(action: RecoveryAction, context: Context) -> None:
    context.emit(
        RecoveryChosen(
            strategy=action.strategy,
            reasoning=action.reasoning,
            confidence=action.confidence,
            by=action.by,
            tool_name=action.tool_name,
            parameters=action.parameters,
        )
    )
