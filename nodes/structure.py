"""Bring a task's answer into the structure that was asked for; a model is asked where it must."""

import json
from dataclasses import replace
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.failure import Failure, ModelFailed, failure_of
from daruma.state.outcome import answer
from daruma.state.result import Structured
from daruma.tools.calls import audit_answer
from daruma.tools.context import Context, Sampling, begin_step, budget_exceeded

PROMPT: Final = """\
You are given a task and the answer that its work came to. Put that answer into one JSON object, \
and say nothing else. Take all values from the answer; make none up. The object has to fit this \
JSON schema:
"""

MOST_REQUESTS: Final = 2
"""How often a model is asked for it: the second time with what was wrong."""


async def structure(state: State, context: Context) -> Update:
    """Read the answer in the form that was asked for, else ask for it (FA-10).

    A value that fits none of the answers ends the task as failed.
    """
    wanted = state.structured
    if wanted is None:
        raise LookupError("no structure was asked for")
    form, most = context.form_of(wanted), context.settings.tools.max_argument_bytes
    if not wanted.problem:
        read = form.read(answer(state), most)
        if isinstance(read, dict):
            return {"structured": replace(wanted, value=read)}
    if spent := budget_exceeded(state, "structure", context):
        return spent
    record = begin_step(state, "structure", context)
    try:
        said = await context.ask(
            "structure",
            _request(state, wanted),
            call=budget.on_thread(state, "structure"),
            role="repair",
            sampling=Sampling(temperature=0, schema=wanted.schema),
            emit=context.emit,
        )
    except ModelFailed as error:
        step = record(ok=False, audit=audit_answer(failover=error.failover))
        return {"steps": step, "failure": failure_of(error, "structure")}
    read = form.read(said.message.text, most)
    fits = isinstance(read, dict)
    step = record(said, ok=fits, audit=audit_answer(failover=said.failover))
    if isinstance(read, dict):
        return {"steps": step, "structured": replace(wanted, value=read)}
    wanted = replace(wanted, said=said.message.text, problem=read)
    update: Update = {"steps": step, "structured": wanted}
    if budget.in_task(state, "structure") + 1 >= MOST_REQUESTS:
        message = f"no answer has the structure that was asked for: {read}"
        failure = Failure(code="structured_output_invalid", node="structure", message=message)
        return {**update, "failure": failure}
    return update


def _request(state: State, wanted: Structured) -> list[AnyMessage]:
    """Return what a model is asked: all that the work came to, and what was wrong before."""
    goal = state.task.goal if state.task else ""
    parts = [f"{each.title}: {each.answer}" for each in state.plan.phases] if state.plan else []
    told = "\n\n".join((f"Task: {goal}", *parts, f"Answer: {answer(state)}"))
    schema = json.dumps(wanted.schema, ensure_ascii=False)
    messages: list[AnyMessage] = [SystemMessage(PROMPT + schema), HumanMessage(told)]
    if wanted.problem:
        wrong = f"That does not fit: {wanted.problem}. Give the whole object, corrected."
        messages += [AIMessage(wanted.said or "(nothing)"), HumanMessage(wrong)]
    return messages
