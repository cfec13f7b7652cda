"""Hold the thread after a failed rollback, until a person says what to do (RO-03)."""

from daruma.state.channels import State, Update
from daruma.state.interrupts import Answer, read_reply
from daruma.tools.asked_of_people import asked_of_people
from daruma.tools.context import Context
from daruma.tools.holding import decided, question_of


async def hold(state: State, context: Context) -> Update:
    """Ask what is to become of what the rollback left; nothing is built on it before."""
    question = question_of(state)
    reply: Answer = read_reply(question, asked_of_people(question, context.now()))
    return await decided(state, reply.answer, context)
