"""Ask a person, in the middle of a plan, for what a call lacks; in a plan no turn can end."""

from typing import Literal

from langchain_core.messages import HumanMessage

from daruma.state.channels import State, Update
from daruma.state.conversation import with_status
from daruma.state.events import ClarificationResolved
from daruma.state.interrupts import Answer, Question, ask_person
from daruma.tools.context import Context
from daruma.tools.continuity import fill_in
from daruma.tools.verification import with_changed_tests


async def clarify(state: State, context: Context) -> Update:
    """Ask, and tell the model what was answered; its next call goes on with what is known.

    What calls it off is told as it is: nothing is filled in then.
    """
    from daruma.tools.continuity import is_calling_off  # only here

    asked = state.clarification
    if asked is None:
        raise LookupError("there is nothing to ask for")
    question = Question(
        type="question",
        kind="clarification",
        id=f"{asked.call_id}:clarification",
        question=asked.question,
        context=with_changed_tests(
            f"{asked.target_action} needs {', '.join(asked.missing_fields)}", state
        ),
        deadline=None,
    )
    reply: Answer = ask_person(question, context.now(), context.emit)
    now = context.local_now()
    past = is_calling_off(reply.answer)
    how: Literal["stale", "resumed"] = "stale" if past else "resumed"
    context.emit(ClarificationResolved(how=how, target_action=asked.target_action))
    said = HumanMessage(reply.answer, id=f"{asked.call_id}:answer")
    known = asked if past else fill_in(asked, reply.answer, now)
    return {"messages": [said], "clarification": with_status(known, how)}
