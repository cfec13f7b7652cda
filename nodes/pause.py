"""Ask what becomes of work whose budget is spent: more of it, or an end (BU-04)."""

from daruma.state.channels import State, Update
from daruma.state.granting import STOP
from daruma.state.interrupts import Answer, read_reply
from daruma.tools.asked_of_people import asked_of_people
from daruma.tools.context import Context
from daruma.tools.pausing import asks, decided, question_of


async def pause(state: State, context: Context) -> Update:
    """Ask; where the settings say to stop, or nobody can be asked, it stops without a question."""
    if not asks(state, context):
        return decided(state, STOP, context)
    question = question_of(state)
    reply: Answer = read_reply(question, asked_of_people(question, context.now()))
    return decided(state, reply.answer, context)
