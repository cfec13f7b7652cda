"""Say what went wrong and what to do differently, before the next attempt."""

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import Reflected
from daruma.state.failover import Failover
from daruma.state.failure import ModelFailed
from daruma.state.recording import record_step
from daruma.state.usage import Usage
from daruma.tools.auditing import call_audit
from daruma.tools.context import Context

PROMPT = """\
The work was checked and did not pass. From what the checks really said, state in a few sentences \
what went wrong in the last attempt and what to do differently. Do not call tools; do not repeat \
the output."""


async def reflect(state: State, context: Context) -> Update:
    """Ask for a reflection; if that fails, the next attempt goes on without one (VE-04)."""
    at = context.now()
    text, usage, failover = await _ask(state, context)
    context.emit(Reflected(text=text))
    step = record_step(
        state,
        "reflect",
        at=at,
        seconds=context.now() - at,
        ok=bool(text),
        usage=usage,
        audit=call_audit(failover),
    )
    if not text:
        return {"steps": step}
    number = budget.spent(state.steps, "reflect")
    note = HumanMessage(
        f"Reflection: {text}\n\nTry again.", id=f"{state.task_id}:reflection:{number}"
    )
    return {"messages": [note], "steps": step}


async def _ask(state: State, context: Context) -> tuple[str, Usage | None, Failover | None]:
    try:
        answer = await context.ask(
            "reflect",
            [SystemMessage(PROMPT), *state.messages],
            call=budget.spent(state.steps, "reflect"),
            role="reflect",
            emit=context.emit,
        )
    except ModelFailed as error:
        return "", None, error.failover
    return answer.message.text.strip(), answer.usage, answer.failover
