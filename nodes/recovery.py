"""Choose one action against a failure, and do it, or leave it to a person to agree (RE-03 to 07).

It never raises, and it never leads to itself: what it can not deal with is an emergency.
"""

from typing import Final

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.budget import asked_before
from daruma.state.channels import State, Update
from daruma.state.events import RecoveryStarted
from daruma.state.failure import Failure, ModelFailed, RecoveryAction
from daruma.state.progress import progress_of
from daruma.state.usage import Failover, Usage
from daruma.tools.calls import audit_answer
from daruma.tools.context import Context, Sampling, begin_step, budget_exceeded, visible_tools
from daruma.tools.recovery import (
    RecoveryCase,
    action_by_rule,
    action_in,
    allowed_action,
    carry_out_action,
    close_on_bug,
    give_up,
    give_up_reason,
    learned_against,
    render_briefing,
)

PROMPT = """\
A step of an agent failed. Choose the one action that is most likely to bring the task on. Answer \
with one JSON object and nothing else:
{"strategy": "...", "reasoning": "...", "action": {"tool_name": null, "parameters": null, \
"escalation_message": null}, "expected_outcome": "...", "confidence": 0.0}
strategy is one of:
- retry: the same again, after a while; for what passes by itself
- alternative-tool: another tool than the one that failed; tool_name names it
- parameter-adjustment: another way; with tool_name and parameters, exactly this call is made
- escalate: a person has to say; escalation_message is the question
- give-up: nothing can help
confidence is from 0 to 1: how sure you are that this helps."""

SAMPLING: Final = Sampling(temperature=0.2, max_tokens=600)


async def recovery(state: State, context: Context) -> Update:
    """Deal with the open failure, or leave it open when nothing more can be tried against it."""
    failure = state.failure
    if failure is None:
        raise LookupError("there is no failure to recover from")
    spent = None if give_up_reason(state, failure) else budget_exceeded(state, "recovery", context)
    if spent:
        return spent
    progress = progress_of(state).to_dict()
    context.emit(RecoveryStarted(code=failure.code, message=failure.message, progress=progress))
    with close_on_bug(context):
        message_id = f"{state.task_id}:recovery:{budget.in_task(state, 'recover')}"
        return await _recover(RecoveryCase(state, failure, message_id), context)


async def _recover(case: RecoveryCase, context: Context) -> Update:
    state, failure = case.state, case.failure
    record = begin_step(state, "recover", context)
    if give_up_reason(state, failure):
        return give_up(case, action_by_rule(state, failure), context)
    action, usage, failover = await _choose_action(state, failure, context)
    update, note = await carry_out_action(case, action, context)
    audit = audit_answer(failover=failover)
    step = record(signature=failure.signature, usage=usage, audit=audit, recovery=note)
    return update | {"steps": step}


async def _choose_action(
    state: State, failure: Failure, context: Context
) -> tuple[RecoveryAction, Usage | None, Failover | None]:
    """Choose: what worked before, else what the model says, else by the rule."""
    offer = visible_tools(state.task, context)
    if learned := await learned_against(state, failure, context):
        return allowed_action(learned, state, failure, offer.names), None, None
    others = context.tools.stand_ins(failure.tool, offer.names)
    told = render_briefing(state, failure, offer, others)
    request = [SystemMessage(PROMPT), HumanMessage(told)]
    try:
        answer = await context.ask(
            "recovery",
            request,
            call=asked_before(state.steps),
            role="recovery",
            sampling=SAMPLING,
            emit=context.emit,
        )
    except ModelFailed as error:
        return action_by_rule(state, failure), None, error.failover
    action = action_in(answer.message.text) or action_by_rule(state, failure)
    return allowed_action(action, state, failure, offer.names), answer.usage, answer.failover
