"""Whether a message answers what the user was asked: by its form, else by a model (CO-02)."""

import json
import re
from collections.abc import Sequence
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
from daruma.tools.dates import WORDS, moment_in, plain

# --- What marks a message as an answer, as something new, or as the end of it: en, de, zh.
#
# In other languages the form tells less, and a model is asked.


def phrases(*rows: str) -> re.Pattern[str]:
    """Return what finds one of the phrases; of Latin letters whole words only."""
    each = sorted({plain(one) for row in rows for one in row.split("|")}, key=len, reverse=True)
    whole = (rf"(?<![a-z0-9]){re.escape(p)}(?![a-z0-9])" if p.isascii() else p for p in each)
    return re.compile("|".join(whole))


CANCEL: Final = phrases(
    "cancel|never mind|nevermind|forget it|forget about it|drop it|stop it|leave it|skip it|abort"
    "|don't bother|not any more|not anymore|no longer needed|don't need it",
    "abbrechen|brich ab|vergiss es|vergiss das|lass es|lass gut sein|lass mal|egal|stornieren"
    "|nicht mehr nötig|doch nicht",
    "算了|取消|不用了|不要了|不必了|没事了",
)
GREETING: Final = phrases(
    "hello|hi|hey|good morning|good afternoon|good evening|thanks|thank you|bye|goodbye",
    "hallo|guten morgen|guten tag|guten abend|danke|tschüss|servus",
    "你好|您好|谢谢|再见|早上好",
)
ASKING: Final = phrases(
    "what|who|whose|why|where|how|which|when|is there|are there|can you|could you|would you"
    "|will you|do you|does|did|tell me",
    "was|wer|wie|warum|wieso|wo|wohin|welche|welcher|welches|wann|kannst du|könntest du|gibt es",
    "什么|谁|怎么|为什么|哪里|哪个|哪些|多少|能不能|可以吗|吗",
)
SAME_MATTER: Final = phrases(
    "do you ask|do you need|do you mean|you mean|is that possible|the options|are possible"
    "|meinst du|brauchst du|fragst du|什么意思"
)
"""Questions about the question."""
SUGGESTING: Final = phrases("how about|what about|would|is fine|is ok|wie wäre|passt|可以吗|好吗")
REQUEST: Final = phrases(
    "create|add|make|write|show|list|tell|send|open|book|find|search|look|delete|remove|play|run"
    "|translate|summarize|summarise|explain|fix|build|refactor|generate|compute|calculate|draw|read"
    "|describe|compare|give me|help me|i want|i need|i would like|i'd like|start|install|update"
    "|remind me|schedule|check|let's talk|talk about",
    "erstelle|schreib|schreibe|zeig|zeige|such|suche|finde|öffne|lösche|übersetze|erkläre|erklär"
    "|fasse|führe|baue|berechne|sag mir|gib mir|hilf mir|ich möchte|ich brauche|ich will|lies"
    "|prüfe",
    "帮我|请帮|写|查一下|查找|搜索|告诉我|打开|删除|翻译|解释|总结|给我|我想|我要|运行",
)
INSTEAD: Final = phrases(
    "instead|something else|another thing|stattdessen|etwas anderes|换一个|别的"
)
PRONOUN: Final = phrases("it|that one|this one|es|ihn|那|它")
"""What stands for the action that was asked about."""
LEADING: Final = re.compile(
    r"(?:(?:how about|what about|make it|let's say|let's do|let us say|say|ok|okay|sure|yes|yeah"
    "|yep|well|hmm|um|then|maybe|perhaps|please|just|no|nope|set it for|put it in|put it on"
    "|i think|i would say|let it be|am besten|sagen wir|bitte|ja|nein|also|vielleicht|lieber"
    r"|好的|好|嗯|那就)(?![a-z0-9])[\s,.:;，、。!-]*)+"
)
TRAILING: Final = re.compile(
    r"(?<![\s,.!?。！？，、])[\s,.!?。！？，、]*+(?:(?:(?<![a-z0-9])(?:"
    "please|then|thanks|thank you|instead|if possible|would be best|is fine|is best|bitte|danke"
    "|吧|好了|谢谢"
    r")[\s,.!?。！？，、]*+)++$|(?<=[\s,.!?。！？，、])$)"
)
VAGUE_TIME: Final = phrases(
    "soon|later|whenever|asap|as soon as|as early as|morning|afternoon|evening|night|weekend|week"
    "|month|year|yearly|daily|weekly|o'clock|noon|midnight|before|after|hour|hours"
    "|christmas|easter",
    "bald|später|irgendwann|jederzeit|vormittag|nachmittag|abend|wochenende|woche|uhr|weihnachten",
    "以后|尽快|随时|上午|下午|晚上|早上|周|星期|点",
    *(word for word, each in WORDS.items() if each.kind in "DWM" and len(word) > 3),
)
NUMBER: Final = re.compile(
    r"\d|"
    + phrases(
        "none|a dozen|dozen|a couple|couple|a few|both|half",
        *(word for word, each in WORDS.items() if each.kind == "N"),
    ).pattern
)


# --- What a message says besides a day or a time: one that says more may be another request. Pure.

_MOST_TOGETHER: Final = 6
"""Words of a moment that are tried together."""

_FILLING: Final = frozenset(
    plain(
        "a an the this that next last same at on in by of for to about around roughly any anytime "
        "sometime time day is be would will i me you it we think guess like prefer works work fine "
        "good ok okay best better great perfect suits please thanks possible then maybe perhaps "
        "am im um gegen der die das den dem ein einen etwa ungefähr so früh ist wäre passt geht "
        "mir ich gut bitte danke dann vielleicht"
    ).split()
)
"""Words that say nothing by themselves. None that negates is among them."""
_SAYS_NUMBER: Final = re.compile(r"\d{1,4}(?:h|am|pm|st|nd|rd|th)?")


def besides_time(text: str, now: datetime) -> list[str] | None:
    """Return what a text in plain letters says besides time, None where it speaks of no time.

    Of a writing without spaces a single character more is none.
    """
    words = text.split()
    rest = " ".join(_without_moment(words, now))
    left = VAGUE_TIME.sub(" ", rest)
    if left == rest and rest == " ".join(words):
        return None
    said = [word for word in re.findall(r"\w+", left) if len(word) > 1 or word.isascii()]
    named = [word for word in said if not _SAYS_NUMBER.fullmatch(word)]
    return [word for word in named if word not in _FILLING and word not in WORDS]


def _without_moment(words: Sequence[str], now: datetime) -> Sequence[str]:
    """Return the words but for the longest ones next to each other that are a day or a time."""
    spans = (
        (at, at + n)
        for n in range(min(_MOST_TOGETHER, len(words)), 0, -1)
        for at in range(len(words) - n + 1)
    )
    for begins, ends in spans:
        if moment_in(" ".join(words[begins:ends]).strip(",.;:!?"), now):
            return [*words[:begins], *words[ends:]]
    return words


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
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
"""Japanese, of which nothing is known here but that it is not Chinese."""
_BREAK: Final = re.compile(r"(?<!\s)\s*+(?:[,;.，、。；]|\band\b|\bund\b)\s*")


def answers_by_form(message: str, clarification: Clarification, now: datetime) -> Verdict:
    """Say whether a message answers a clarification: ``unsure`` where its form does not tell.

    Dates are read as of ``now``.
    """
    text = plain(message).strip()
    if not text or len(text) > LONGEST or _KANA.search(text):
        return "unsure"
    if split_prefix(message)[0] or _COMMAND.match(text) or is_calling_off(text):
        return "stale"
    bare = strip_courtesy(text)
    offered = set(re.findall(r"\w+", plain(clarification.question)))
    said = [w for w in re.findall(r"\w+", bare) if w not in ("the", "a", "one", "in", "on", "der")]
    names_an_option = 0 < len(said) <= 3 and offered.issuperset(said)
    if names_an_option or _is_the_field(bare, clarification, now):
        return "resume"
    return _by_its_kind(text, bare, clarification, now)


def is_calling_off(text: str) -> bool:
    """Whether a message says no more than that nothing is to be done."""
    return words_in(text) <= SHORT and CANCEL.search(plain(text)) is not None


def strip_courtesy(text: str) -> str:
    """Return a text without the words of assent and courtesy around it."""
    lead = LEADING.match(text)
    return TRAILING.sub("", text[lead.end() if lead else 0 :]).strip()


def words_in(text: str) -> int:
    """Count the words of a text; two characters of a writing without spaces are one."""
    dense = len(_CJK.findall(text))
    return dense // 2 + len(_CJK.sub(" ", text).split())


def _is_the_field(bare: str, clarification: Clarification, now: datetime) -> bool:
    """Whether a message is, or begins with, a value of what is missing."""
    parts = [bare, f"{bare}.", _BREAK.split(bare, maxsplit=1)[0]]
    for name in clarification.missing_fields:
        if expects(name) == "date" and any(moment_in(part, now) for part in parts):
            return True
        if expects(name) == "number" and words_in(bare) <= SHORT and NUMBER.search(bare):
            return not REQUEST.match(bare)
    return False


def expects(field: str) -> Literal["date", "number", "text"]:
    """Return what a field holds, going by its name."""
    parts = field.casefold().replace("-", "_").split("_")
    if any(part in _DATES for part in parts):
        return "date"
    return "number" if any(part in _NUMBERS for part in parts) else "text"


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
    requests = REQUEST.match(bare)
    if requests and not PRONOUN.match(bare[requests.end() :].strip()):
        return True
    if INSTEAD.search(text) or (_CJK.search(text) and REQUEST.search(text)):
        return True
    return _is_question(text) and not SUGGESTING.search(text) and bool(ASKING.search(text))


def _is_question(text: str) -> bool:
    opens = ASKING.match(text)
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


async def judge_answer(
    message: str, asked: Clarification, state: State, context: Context, task_id: str
) -> Judged:
    """Say whether a message answers a clarification: by its form, else by what the model says.

    Where neither tells, it does not: going on wrongly does what nobody asked for, and starting
    anew only asks again. The step is the task's that the message begins, ``task_id``.
    """
    now = context.local_now()
    verdict = answers_by_form(message, asked, now)
    if verdict != "unsure" or not message.strip():
        return Judged(verdict == "resume", [])
    at = context.now()
    shown = {  # a message is data, in quotes
        "asked": asked.question,
        "missing": list(asked.missing_fields),
        "message": message[:MOST_SHOWN],
    }
    answers, usage, failover = False, None, None
    try:
        answer = await context.ask(
            "intake",
            [SystemMessage(PROMPT), HumanMessage(json.dumps(shown, ensure_ascii=False))],
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
