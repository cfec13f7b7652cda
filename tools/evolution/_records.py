"""What evolution keeps: text made safe to keep and to give as advice; records in a store."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar
from unicodedata import combining, normalize

from langgraph.store.base import BaseStore, Item, PutOp, Result
from pydantic import TypeAdapter, ValidationError

from daruma.state.lessons import Experience
from daruma.state.text import digest, hiding_places, look_alikes, printable_line, storable_text
from daruma.tools.memory import store_label
from daruma.tools.text import split_words, without_keys

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


# --- Records of evolution in a LangGraph store: where they are kept, and reading them (EV-04).

EVOLUTION_NAMESPACE: Final = ("daruma", "evolution")

PAGE: Final = 500
"""Items that are read from a store at once."""

Kind = Literal[
    "experiences", "pitfalls", "evidence", "recoveries", "variants", "outcomes", "upkeep"
]
"""What an owner has: one namespace of each kind, or one beneath it for each thing of that kind."""

Namespace = tuple[str, ...]
Record = TypeVar("Record")


def shelf(owner: str, kind: Kind, *of: str) -> Namespace:
    """Return the namespace of an owner's things of a kind; of one thing, named by ``of``."""
    return (*EVOLUTION_NAMESPACE, store_label(owner), kind, *map(store_label, of))


_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def read_record(form: type[Record], item: Item | None) -> Record | None:
    """Return the record that an item holds; None for one that is not there or does not fit."""
    with suppress(ValidationError):
        read: Record | None = _adapter(form).validate_python(item.value) if item else None
        return read
    return None


def found_in(result: Result) -> list[Item]:
    """Return the items that a search of a batch came to."""
    found = result if isinstance(result, list) else []
    return [each for each in found if isinstance(each, Item)]


@dataclass(frozen=True)
class Shelf(Generic[Record]):
    """The records of one form in one namespace of a store; what else lies there is passed over.

    ``found_by`` are the fields that they are searched by. All of it raises what the store raises.
    """

    store: BaseStore
    form: type[Record]
    place: Namespace
    found_by: tuple[str, ...] = ()

    def own(self, items: Iterable[Item]) -> list[Item]:
        """Return the items that lie here: a store may take a namespace for the begin of others."""
        return [item for item in items if tuple(item.namespace) == self.place]

    def read(self, items: Iterable[Item]) -> list[Record]:
        """Return the records of those items that lie here and fit."""
        found = (read_record(self.form, item) for item in self.own(items))
        return [each for each in found if each is not None]

    async def get(self, key: str) -> Record | None:
        """Return a record by its key."""
        return read_record(self.form, await self.store.aget(self.place, key))

    async def all(self, most: int = 1000, **filter_: Any) -> list[Record]:
        """Return the records, at most as many as the first ``most`` items hold."""
        found: list[Record] = []
        for offset in range(0, most, PAGE):
            limit = min(PAGE, most - offset)
            items = await self.store.asearch(
                self.place, filter=filter_ or None, limit=limit, offset=offset
            )
            found += self.read(items)
            if len(items) < limit:
                break
        return found

    def to_put(self, key: str, value: Record) -> PutOp:
        """Return the operation that keeps a record."""
        plain = _adapter(self.form).dump_python(value, mode="json")
        return PutOp(self.place, key, plain, list(self.found_by) or False)

    async def put(self, key: str, value: Record) -> None:
        """Keep a record in place of what has its key."""
        await self.store.abatch([self.to_put(key, value)])

    async def delete(self, keys: Iterable[str]) -> None:
        """Delete what has those keys."""
        if gone := [PutOp(self.place, key, None) for key in keys]:
            await self.store.abatch(gone)

    async def delete_all(self, most: int, **filter_: Any) -> int:
        """Delete what lies here, records or not, ``most`` at most; return how many there were."""
        items = await self.store.asearch(self.place, filter=filter_ or None, limit=most)
        keys = [item.key for item in self.own(items)]
        await self.delete(keys)
        return len(keys)


# --- Experiences: one for each task, found by its goal.


def experiences(store: BaseStore, owner: str) -> Shelf[Experience]:
    """Return the tasks that an owner has on record."""
    return Shelf(store, Experience, shelf(owner, "experiences"), ("goal",))


def key_of(experience: Experience) -> str:
    """Return the key that a task's experience is kept under: one for each task."""
    return digest(experience.task_id)


async def put_experience(experience: Experience, store: BaseStore) -> None:
    """Put a task on record, in place of what was on record of it."""
    await experiences(store, experience.owner).put(key_of(experience), experience)


def experience_in(item: Item | None) -> Experience | None:
    """Return what an item holds; None for none, and for what is of another form."""
    return read_record(Experience, item)
