"""Ask the model once for better tool names or arguments, where the rules were not enough."""

from functools import partial

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.budget import hidden_tools
from daruma.state.calls import with_status
from daruma.state.channels import State, Update
from daruma.state.events import AnswerAudited
from daruma.state.failure import ModelFailed
from daruma.state.spending import overrun
from daruma.state.usage import Failover
from daruma.tools.calls import BrokenCalls, audit_answer, repair_round
from daruma.tools.context import EXACT, Answer, Context, begin_step, visible_tools
from daruma.tools.continuity import offer_leaving_out
from daruma.tools.hooks import refuse


async def repair(state: State, context: Context) -> Update:
    """Make one model call for all that is broken in one way: names first, then arguments.

    What comes back is checked like any other call. What is still broken after the last attempt
    has failed, and the model that made the call is told why.
    """
    offer = visible_tools(
        state.task, context, hidden_tools(state, answered=True), messages=state.messages
    )
    window = context.settings.llm.context_window_tokens
    tried = partial(budget.repairs, state)
    this = repair_round(
        state.calls, state.messages, offer_leaving_out(offer, state), tried, window=window
    )
    record = begin_step(state, "repair", context)
    answer, failover = await _ask(this, state, context)
    mended = this.mend(answer.message.text) if answer else {}
    calls = tuple(this.close(mended.get(call.id, call)) for call in state.calls)
    tasks, told = tuple(mended.values()), this.record(mended)
    audit = audit_answer(this.message_id, tasks, asked=told, failover=failover)
    if audit:
        context.emit(AnswerAudited(audit=audit.to_dict()))
    step = record(answer, ok=bool(mended), signature=this.signature, audit=audit)
    ended = [new for old, new in zip(state.calls, calls, strict=True) if old != new]
    results = refuse(with_status(ended, "failed"), context.emit)
    return {"calls": calls, "steps": step, "messages": [*results]}


async def _ask(
    this: BrokenCalls, state: State, context: Context
) -> tuple[Answer | None, Failover | None]:
    if not this.request.asked_ids:
        return None, None  # too much to be shown: nobody can say what was meant
    if overrun(state, "main"):
        return None, None  # the model is told what is broken, once there is budget again
    try:
        answer = await context.ask(
            "repair",
            [SystemMessage(this.request.system), HumanMessage(this.request.user)],
            call=budget.on_thread(state, "repair"),
            role="repair",
            sampling=EXACT,
            emit=context.emit,
        )
    except ModelFailed as error:
        return None, error.failover  # told by the event of the call; the calls stay broken
    return answer, answer.failover
