"""Say what went wrong and what to do differently, before the next attempt."""

from dataclasses import replace

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import Reflected
from daruma.state.failure import ModelFailed
from daruma.state.usage import Failover
from daruma.tools.calls import audit_answer
from daruma.tools.context import Answer, Context, RecordStep, begin_step, budget_exceeded
from daruma.tools.window import (
    Draft,
    after_provider_refusal,
    check_size,
    sent_history,
    too_large_update,
)

PROMPT = """\
The work was checked and did not pass. From what the checks really said, state in a few sentences \
what went wrong in the last attempt and what to do differently. Do not call tools; do not repeat \
the output."""


async def reflect(state: State, context: Context) -> Update:
    """Ask for a reflection; if that fails, the next attempt goes on without one (VE-04)."""
    if spent := budget_exceeded(state, "reflect", context):
        return spent
    draft = Draft("reflect", [SystemMessage(PROMPT)], sent_history(state))
    counted, crowded = check_size(draft, state, context)
    if crowded:
        return too_large_update(crowded)
    record = begin_step(state, "reflect", context)
    try:
        answer = await context.ask(
            "reflect",
            draft.messages(state),
            call=budget.on_thread(state, "reflect"),
            role="reflect",
            emit=context.emit,
        )
    except ModelFailed as error:
        if crowded := after_provider_refusal(draft, state, context, error):
            return too_large_update(crowded)
        return _reflection_update(state, context, record, failover=error.failover)
    answer = replace(answer, counted=counted)
    return _reflection_update(state, context, record, answer, answer.failover)


def _reflection_update(
    state: State,
    context: Context,
    record: RecordStep,
    answer: Answer | None = None,
    failover: Failover | None = None,
) -> Update:
    text = answer.message.text.strip() if answer else ""
    context.emit(Reflected(text=text))
    step = record(answer, ok=bool(text), audit=audit_answer(failover=failover))
    if not text:
        return {"steps": step}
    number = budget.on_thread(state, "reflect")
    note = HumanMessage(
        f"Reflection: {text}\n\nTry again.", id=f"{state.task_id}:reflection:{number}"
    )
    return {"messages": [note], "steps": step}
