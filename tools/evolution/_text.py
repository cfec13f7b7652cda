"""Text that is kept of tasks, and what of it may become an instruction of a prompt."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import combining, normalize

from daruma.state.text import hiding_places, look_alikes, printable_line, storable_text
from daruma.tools.skills import usable_in
from daruma.tools.text import is_related, split_words, without_keys

# --- Text that is kept of tasks: one line, bounded, without keys and without what hides. Pure.

LONGEST_KEPT: Final = 300
"""Characters of what a pitfall says, or advises: three of them are no more than a paragraph."""

_LOOKED_AT: Final = 20_000


def storable_line(text: str, longest: int = LONGEST_KEPT) -> str:
    """Return a text as one line that may be kept: keys masked, nothing that controls or hides.

    >>> storable_line("red\\n  \\x1b[31mblood")
    'red [31mblood'
    """
    return printable_line(without_keys(storable_text(text[:_LOOKED_AT])), longest)


# --- What may become an instruction of a prompt: one line of plain advice, and nothing else.
#
# What tools say is untrusted, and a model that has read it may repeat it. Whatever does not look
# like advice on how to work is refused, even where that refuses a good one: nothing has to be
# learned.

LONGEST_INSTRUCTION: Final = 400
"""Characters of an instruction."""
REPEATED: Final = 8
"""Words in a row that advice may not have in common with what a tool said."""

_LEAVE_OUT: Final = (
    r"(?:skip|disable|delete|remove|bypass|circumvent|ignore|weaken|fake|turn(?:ing)? off|without"
    r"|avoid|(?:never|do not|don't) (?:run|ask|wait))"
)
_GUARDS: Final = r"(?:tests?|checks?|assert\w*|verification|reviews?|reviewers?|asking)"
_ROLES: Final = r"(?:system|assistant|user|human|developer|tool|ai|admin\w*)"
_OLD: Final = (
    r"(?:instructions?|prompts?|rules?|task|above|before|everything|previous|prior|earlier)"
)

_REFUSED: Final[dict[str, re.Pattern[str]]] = {
    what: re.compile("|".join(patterns), re.IGNORECASE)
    for what, patterns in {
        "markup": (r"[<>{}\[\]`|\\]", r"#{2,}", r"-{3,}", r"={3,}", r"\*{2,}", r"~{3,}"),
        "a role": (rf"\b{_ROLES}\s*(?:message)?\s*:",),
        "an address": (
            r"\w://",
            r"\bwww\.",
            r"\w@\w",
            r"\b[\w-]+\.(?:com|net|org|io|dev|ai|app|xyz|ru|cn|info|me)\b",
            r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
        ),
        "a command": (
            r"[$;&]",
            r"\b(?:sudo|curl|wget|chmod|chown|bash|powershell|eval|exec|rm|dd|mkfs|netcat)\b",
            r"\b(?:pip3?|npm|apt|brew) (?:i|install)\b",
            r"\bgit (?:push|reset|clean|config)\b",
            r"(?:^|\s)--?\w",
        ),
        "another will": (
            rf"\b(?:ignore|disregard|forget|overr\w+)\b.{{0,40}}\b{_OLD}\b",
            r"\b(?:ignore|disregard)\b.{0,40}\b(?:users?|persons?|people|requests?|goals?|said|asked)\b",
            r"\b(?:report|claim|pretend)\w*\b.{0,20}\b(?:success|done|completed?|passed)\b",
            r"\byou are (?:now|no longer)\b",
            r"\bfrom now on\b",
            r"\b(?:pretend|obey|jailbreak\w*|prompts?)\b",
            r"\bnew instructions?\b",
            r"\binstead of (?:the|your) task\b",
        ),
        "what guards the work": (
            rf"\b{_LEAVE_OUT}\W+(?:\w+\W+){{0,4}}{_GUARDS}\b",
            r"\b(?:approv|sandbox|permission)",
            r"\b(?:polic(?:y|ies)|safety)\b",
        ),
        "secrets": (
            r"\[key\]",
            r"\b(?:passwords?|credentials?|secrets?|tokens?|ssh)\b",
            r"\bapi[ _-]?keys?\b",
            r"\.env\b",
            r"\b(?:exfiltrat|upload)",
        ),
    }.items()
}
"""By what it is said to hold: patterns of what makes a text more than advice, whatever the case.

They are of English: what says such a thing in other words passes, and still stands in a prompt as a
record, not as an order, in half of the tasks at first, and in use only if the tasks go better.
"""


def refusal(text: str, said: Iterable[str] = ()) -> str:
    """Say why a text can be no instruction; empty if it can be one.

    ``said`` is what tools have said: advice that repeats it is their word, not the agent's.
    """
    plain = normalize("NFKC", text)
    if why := _misshapen(plain):
        return why
    # Without accents: a model reads over them, and the patterns have none.
    read = "".join(char for char in normalize("NFD", plain) if not combining(char))
    found = next((what for what, pattern in _REFUSED.items() if pattern.search(read)), "")
    if found:
        return f"it holds {found}"
    ours = _runs(plain)
    repeats = any(not ours.isdisjoint(_runs(each)) for each in said)
    return "it repeats what a tool said" if repeats else ""


def _misshapen(text: str) -> str:
    if not text.strip():
        return "it is empty"
    if len(text) > LONGEST_INSTRUCTION:
        return f"it is longer than {LONGEST_INSTRUCTION} characters"
    if not text.isprintable() or hiding_places(text):
        return "it is not one printable line"
    if any(look_alikes(text)):
        return "it holds letters that look like others"
    return "it holds a key" if without_keys(text) != text else ""


def pass_gate(text: str, said: Iterable[str] = ()) -> str:
    """Return a text that can be an instruction, in one line; empty where it can not."""
    line = " ".join(normalize("NFKC", text).split())
    return "" if refusal(line, said) else line


def _runs(text: str) -> set[tuple[str, ...]]:
    found = split_words(text)
    return {tuple(found[at : at + REPEATED]) for at in range(len(found) - REPEATED + 1)}


# --- Which skills a task is about: experience is searched by its goal and by them.


def skills_about(goal: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the skills that a goal is about; this reads the disk.

    The rule is that of recalled memories: a skill's name and description share a third of the
    goal's telling words, two at most, or a name as code writes it.
    """
    there = usable_in(folders) if folders else []
    return tuple(
        skill.name for skill in there if is_related(goal, f"{skill.name} {skill.description}")
    )
