"""Ask a person what is to be done about a failure, or whether recovery may do what it would."""

from daruma.state.channels import State, Update
from daruma.state.interrupts import ask_person
from daruma.tools.context import Context
from daruma.tools.recovery import apply_reply, question_of


async def consult(state: State, context: Context) -> Update:
    """Ask, and do what was answered: the action, what the person says in its place, or nothing."""
    question = question_of(state)
    return await apply_reply(state, ask_person(question, context.now(), context.emit), context)
