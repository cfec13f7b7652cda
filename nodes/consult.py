"""Ask a person what is to be done about a failure, or whether recovery may do what it would."""

from daruma.state.channels import State, Update
from daruma.tools.calls.approvals import asked_of_people
from daruma.tools.context import Context
from daruma.tools.recovery.action import question_of, replied


async def consult(state: State, context: Context) -> Update:
    """Ask, and do what was answered: the action, what the person says in its place, or nothing."""
    question = question_of(state)
    return await replied(state, asked_of_people(question, context.now()), context)
