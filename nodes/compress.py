"""Bring the request that is over its budget under it, by showing less of the history."""

from daruma.state.budget import GAVE_UP
from daruma.state.channels import State, Update
from daruma.state.events import ContextCompacted
from daruma.tools.calls import audit_answer
from daruma.tools.context import Context, begin_step
from daruma.tools.window import compact_history


async def compress(state: State, context: Context) -> Update:
    """Take the measures in their order; whoever asked for it then makes its request anew (CX-01).

    The history stays as it is: what changes is how much of it is sent.
    """
    if state.crowded is None:
        raise LookupError("there is no request that is too large")
    record = begin_step(state, "compress", context)
    done = await compact_history(state, state.crowded, context)
    context.emit(ContextCompacted(node=done.cost.node, cost=done.cost.to_dict()))
    audit = audit_answer(failover=state.crowded.failover)
    step = record(ok=done.failure is None, audit=audit, context_cost=done.cost)
    steps = [*(made for call in done.calls for made in call.steps(state)), *step]
    update: Update = {"compaction": done.compaction, "crowded": None, "steps": steps}
    if done.failure and state.crowded.node == "plan" and state.plan:  # it ends as without (PL-01b)
        steps += begin_step(state, "plan", context)(ok=False, signature=GAVE_UP)
        return update
    return {**update, "failure": done.failure} if done.failure else update
