"""Asking a model whether a message answers a question, where its form does not tell."""

import json
from typing import Final, NamedTuple

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.clarification import Clarification
from daruma.state.failure import ModelFailed
from daruma.state.step import Step
from daruma.tools.auditing import call_audit
from daruma.tools.context import EXACT, Context
from daruma.tools.continuity.continuation import continues
from daruma.tools.dates.machine_zone import local_time
from daruma.tools.repair.surroundings import bare

PROMPT: Final = """\
A user was asked a question and has sent a message. Does the message answer the question, even in \
part? A message about something else, or one that calls it off, does not. Answer with one JSON \
object and nothing else: {"answers": true} or {"answers": false}"""

MOST_SHOWN: Final = 2000
"""Characters of a message that the model is shown."""


class Judged(NamedTuple):
    """Whether a message goes on with a clarification, and the step that it took to find out."""

    resumes: bool
    steps: list[Step]


async def judged(
    message: str, asked: Clarification, state: State, context: Context, task_id: str
) -> Judged:
    """Say whether a message answers a clarification: by its form, else by what the model says.

    Where neither tells, it does not: going on wrongly does what nobody asked for, and starting
    anew only asks again. The step is the task's that the message begins, ``task_id``.
    """
    now = local_time(context.now(), context.settings.tools.time_zone)
    verdict = continues(message, asked, now)
    if verdict != "unsure" or not message.strip():
        return Judged(verdict == "resume", [])
    at = context.now()
    answers, usage, failover = False, None, None
    try:
        answer = await context.ask(
            "intake",
            [SystemMessage(PROMPT), HumanMessage(_shown(message, asked))],
            call=budget.on_thread(state, "intake"),
            role="auxiliary",
            sampling=EXACT,
            emit=context.emit,
        )
        usage, failover = answer.usage, answer.failover
        answers = says_yes(answer.message.text)
    except ModelFailed as error:
        failover = error.failover
    step = Step(
        kind="intake",
        task_id=task_id,
        at=at,
        seconds=context.now() - at,
        ok=usage is not None,
        usage=usage,
        audit=call_audit(failover),
    )
    return Judged(answers, [step])


def says_yes(text: str) -> bool:
    """Whether an answer is the one JSON object that says yes, and nothing else."""
    try:
        said = json.loads(bare(text)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get("answers") is True


def _shown(message: str, asked: Clarification) -> str:
    """Return what the model is shown: a message is data, in quotes."""
    return json.dumps(
        {
            "asked": asked.question,
            "missing": list(asked.missing_fields),
            "message": message[:MOST_SHOWN],
        },
        ensure_ascii=False,
    )
