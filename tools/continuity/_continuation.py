"""Whether a message answers what the user was asked: by its form, else by a model (CO-02)."""

import json
import re
from datetime import datetime
from typing import Final, Literal, NamedTuple

from langchain_core.messages import HumanMessage, SystemMessage

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.conversation import Clarification, each_of
from daruma.state.failure import ModelFailed
from daruma.state.mode import split_prefix
from daruma.state.steps import Step
from daruma.tools.calls import audit_answer
from daruma.tools.calls.repair import strip_fence
from daruma.tools.context import EXACT, Context
from daruma.tools.continuity._phrases import (
    ASKING,
    CANCEL,
    GREETING,
    INSTEAD,
    LEADING,
    NUMBER,
    PRONOUN,
    REQUEST,
    SAME_MATTER,
    SUGGESTING,
    TRAILING,
    besides_time,
)
from daruma.tools.dates import moment_in, plain

# --- Whether a message answers what the user was asked, by its form alone (CO-02). Pure.

Verdict = Literal["resume", "stale", "unsure"]

SHORT: Final = 6
"""Words of a fragment; in writing without spaces, twice as many characters."""
LONGEST: Final = 400
"""Characters that are looked at: a longer message says more than an answer."""

_DATES: Final = ("date", "time", "day", "when", "deadline", "due")
_NUMBERS: Final = ("count", "amount", "number", "quantity", "size", "minutes", "hours", "price")
_COMMAND: Final = re.compile(r"/\w+(?:\s|$)")
"""As other programs are told what to do; a path goes on with a slash."""
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_BREAK: Final = re.compile(r"(?<!\s)\s*+(?:[,;.，、。；]|\band\b|\bund\b|\bet\b|\by\b)\s*")


def continues(message: str, clarification: Clarification, now: datetime) -> Verdict:
    """Say whether a message answers a clarification: ``unsure`` where its form does not tell.

    Dates are read as of ``now``.
    """
    text = plain(message).strip()
    if not text or len(text) > LONGEST:
        return "unsure"
    if split_prefix(message)[0] or _COMMAND.match(text):
        return "stale"
    if is_calling_off(text):
        return "stale"
    bare = stripped(text)
    if _is_the_field(bare, clarification, now) or _names_an_option(bare, clarification):
        return "resume"
    return _by_its_kind(text, bare, clarification, now)


def is_calling_off(text: str) -> bool:
    """Whether a message says no more than that nothing is to be done."""
    return words_in(text) <= SHORT and CANCEL.search(plain(text)) is not None


def stripped(text: str) -> str:
    """Return a text without the words of assent and courtesy around it."""
    return TRAILING.sub("", text[_lead(text) :]).strip()


def words_in(text: str) -> int:
    """Count the words of a text; two characters of a writing without spaces are one."""
    dense = len(_CJK.findall(text))
    return dense // 2 + len(_CJK.sub(" ", text).split())


def _lead(text: str) -> int:
    found = LEADING.match(text)
    return found.end() if found else 0


def _is_the_field(bare: str, clarification: Clarification, now: datetime) -> bool:
    """Whether a message is, or begins with, a value of what is missing."""
    parts = [bare, f"{bare}.", _BREAK.split(bare, maxsplit=1)[0]]
    for name in clarification.missing_fields:
        if expects(name) == "date" and any(moment_in(part, now) for part in parts):
            return True
        if expects(name) == "number" and words_in(bare) <= SHORT and _number_in(bare):
            return not REQUEST.match(bare)
    return False


def _number_in(text: str) -> bool:
    return bool(re.search(r"\d", text) or NUMBER.search(text))


def expects(field: str) -> Literal["date", "number", "text"]:
    """Return what a field holds, going by its name."""
    parts = field.casefold().replace("-", "_").split("_")
    if any(part in _DATES for part in parts):
        return "date"
    return "number" if any(part in _NUMBERS for part in parts) else "text"


def _names_an_option(bare: str, clarification: Clarification) -> bool:
    """Whether a message quotes the question: its words are some of those that it offered."""
    offered = set(re.findall(r"\w+", plain(clarification.question)))
    said = [w for w in re.findall(r"\w+", bare) if w not in ("the", "a", "one", "in", "on", "der")]
    return 0 < len(said) <= 3 and offered.issuperset(said)


def _by_its_kind(text: str, bare: str, clarification: Clarification, now: datetime) -> Verdict:
    dated = "date" in map(expects, clarification.missing_fields)
    besides = _besides_time_and_matter(text, clarification, now) if dated else None
    if _is_new(text, bare):
        about = SAME_MATTER.search(text) or (besides is not None and not _is_question(text))
        return "unsure" if about else "stale"
    if _is_question(text):
        return "unsure"
    if dated:
        return "resume" if besides == [] else "unsure"
    return "resume" if words_in(bare) <= SHORT else "unsure"


def _besides_time_and_matter(
    text: str, clarification: Clarification, now: datetime
) -> list[str] | None:
    """Return what a message says besides when, and besides what the question was about."""
    besides = besides_time(text, now)
    if besides is None:
        return None
    known = (value for each in each_of(clarification) for value in each.partial_args.values())
    about = plain(" ".join(each for each in known if isinstance(each, str)))
    return [word for word in besides if word not in about.split()]


def _is_new(text: str, bare: str) -> bool:
    """Whether it has the form of a request, of a question, or of a greeting."""
    if GREETING.match(text) and words_in(text) <= 3:
        return True
    if INSTEAD.search(text) or _at_the_start(REQUEST, bare):
        return True
    if _CJK.search(text) and REQUEST.search(text):
        return True
    suggests = SUGGESTING.search(text)
    return _is_question(text) and not suggests and bool(ASKING.search(text))


def _at_the_start(pattern: re.Pattern[str], bare: str) -> bool:
    found = pattern.match(bare)
    return found is not None and not PRONOUN.match(bare[found.end() :].strip())


def _is_question(text: str) -> bool:
    opens = ASKING.match(text.lstrip("¿"))
    return text.endswith(("?", "？")) or (opens is not None and words_in(text) > 1)


# --- Asking a model whether a message answers a question, where its form does not tell.

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
    now = context.local_now()
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
        audit=audit_answer(failover=failover),
    )
    return Judged(answers, [step])


def says_yes(text: str) -> bool:
    """Whether an answer is the one JSON object that says yes, and nothing else."""
    try:
        said = json.loads(strip_fence(text)[0])
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
