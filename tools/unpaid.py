"""Looking at the budget before anything is spent of it (BU-04)."""

from daruma.state.channels import State, Update
from daruma.state.events import BudgetSpent
from daruma.state.grant import Paying
from daruma.state.spending import overrun
from daruma.tools.context import Context


def unpaid(state: State, node: Paying, context: Context) -> Update | None:
    """Return the update of a node that can not go on, as its budget is spent; None if it can."""
    over = overrun(state, node)
    if over is None:
        return None
    context.emit(
        BudgetSpent(
            node=node, scope=over.scope, measure=over.measure, spent=over.spent, limit=over.limit
        )
    )
    return {"overrun": over}
