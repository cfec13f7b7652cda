"""The names in a text and how they are related, by rule. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from daruma.tools.knowledge._passages import Passage

# --- The names in a text: links, code, and words with capitals. By rule, and pure.

MOST_NAMES: Final = 20
"""Names that are kept of one passage."""

_WIKI_LINK: Final = re.compile(r"\[\[([^\[\]|#]{1,80})(?:[|#][^\[\]]*)?\]\]")
_CODE: Final = re.compile(r"`([^`\n]{2,60})`")
_IDENTIFIER: Final = re.compile(
    r"\b(?:[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]\w*_\w+|[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+)\b"
)
_CAPITALS: Final = re.compile(
    r"(?<![\w.])[A-ZÄÖÜÉ][\w'’-]*(?:[ \t]+(?:of |the |de |von |der )?[A-ZÄÖÜÉ][\w'’-]*){0,3}"
)
_BEGINS: Final = re.compile(r"(?:^|[.!?:]\s+|\n\s*(?:[-*>#|]+|\d+[.)])?\s*)$")
_FILLING: Final = """
    a an and as at but by each every for from he her here his how however i if in is it its many
    more most no not of on one only or our she so some such that the their then there these they
    this those to we what when where which while who why with you your
"""
_NO_NAMES: Final = frozenset(_FILLING.split())


def names_in(text: str) -> list[str]:
    """Return the names in a text, each once, in their order.

    A single word with a capital at the beginning of a sentence is none.

    >>> names_in("The Lease Keeper uses `take_lease` of PostgresSaver in Berlin.")
    ['Lease Keeper', 'take_lease', 'PostgresSaver', 'Berlin']
    """
    places: dict[str, int] = {}
    for place, name in _found(text):
        clean = " ".join(name.split()).strip(" .,:;'’-")
        if len(clean) > 1 and clean.casefold() not in _NO_NAMES:
            places[clean] = min(place, places.get(clean, place))
    return sorted(places, key=lambda name: places[name])[:MOST_NAMES]


def same(name: str) -> str:
    """Return what two spellings of one name have in common.

    >>> same("The Postgres-Saver") == same("postgres saver")
    True
    """
    words = re.sub(r"[\W_]+", " ", name).casefold().split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words)


def _found(text: str) -> Iterator[tuple[int, str]]:
    for pattern in (_WIKI_LINK, _CODE):
        for match in pattern.finditer(text):
            yield match.start(), match[1].removesuffix("()")
    bare = _CODE.sub(lambda m: " " * len(m[0]), _WIKI_LINK.sub(lambda m: " " * len(m[0]), text))
    for match in _IDENTIFIER.finditer(bare):
        yield match.start(), match[0]
    for match in _CAPITALS.finditer(bare):
        yield from _capital(bare, match.start(), match[0])


def _capital(text: str, place: int, name: str) -> Iterator[tuple[int, str]]:
    first, _, rest = name.partition(" ")
    if first.casefold() in _NO_NAMES:  # "The Lease" names a lease
        if rest:
            yield place + len(first) + 1, rest
    elif rest or not _BEGINS.search(text[:place]):
        yield place, name


# --- How things are related, read from a text by rule: verbs between two names, links, headings.
# Pure.
#
# No model reads here: what a text says in other words is not found. Each relation has its sentence.

MOST_RELATIONS: Final = 40
"""Relations that are kept of one passage."""

_VERBS: Final = {
    "depends on": r"depends? (?:up)?on|relies on|rely on",
    "uses": r"uses?|is using",
    "requires": r"requires?|needs?",
    "is part of": r"(?:is|are) (?:a )?part of|belongs? to",
    "contains": r"contains?|consists? of|includes?",
    "calls": r"calls?|invokes?",
    "implements": r"implements?",
    "extends": r"extends?|inherits? from|(?:is|are) derived from",
    "replaces": r"replaces?|supersedes?",
    "writes to": r"writes? to|stores? in|(?:is|are) (?:stored|kept) in",
    "reads from": r"reads? from",
    "was made by": r"(?:was|were|is|are) (?:made|written|founded|created|developed) by",
    "is a": r"is an?",
}
_SAID: Final = re.compile(
    "|".join(rf"\b(?P<v{number}>{verbs})\b" for number, verbs in enumerate(_VERBS.values()))
)
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)")
_LINK: Final = re.compile(r"\[([^\[\]]{1,80})\]\((?!https?:|mailto:|#)([^()\s]{1,200})\)")
_WIKI_TARGET: Final = re.compile(r"\[\[([^\[\]|#]{1,80})")
_PHRASE: Final = r"(?:the|a|an|each|every|all|its)\s+((?:[\w-]+\s+){0,2}[\w-]+)"
_PHRASE_BEFORE: Final = re.compile(rf"\b{_PHRASE}\s*$", re.IGNORECASE)
_PHRASE_AFTER: Final = re.compile(rf"^\s*{_PHRASE}?", re.IGNORECASE)
_CLAUSE_ENDS: Final = re.compile(
    r"[;:(,](?! (?:and )?[A-Z`])|\b(?:when|if|because|which|that|but|so|while)\b"
)
_FENCED: Final = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_NEAR: Final = 40
"""Characters between a verb and a name that is meant with it, at most."""
_JOINING: Final = """
    and or but for to of in on at by with from that which who when if as is are was so
"""
_ENDS: Final = frozenset(_JOINING.split())


@dataclass(frozen=True)
class Relation:
    """That ``subject`` stands in a relation to ``object``, and the sentence that says so."""

    subject: str
    relation: str
    object: str
    sentence: str = ""


def relations_in(passage: Passage, title: str) -> list[Relation]:
    """Return the relations that a passage states, each once."""
    found = [*_of_headings(passage, title), *_of_links(passage, title)]
    for sentence in _SENTENCES.split(_prose(passage.text)):
        found += _said(" ".join(sentence.split())[:500])
    kept = {(same(r.subject), r.relation, same(r.object)): r for r in reversed(found)}
    told = [r for (subject, _, other), r in kept.items() if subject and other and subject != other]
    return told[::-1][:MOST_RELATIONS]


def _of_headings(passage: Passage, title: str) -> Iterator[Relation]:
    above: Sequence[str] = (title, *passage.headings)
    for outer, inner in pairwise(above):
        yield Relation(inner, "is part of", outer, f"heading: {' > '.join(above)}"[:200])


def _of_links(passage: Passage, title: str) -> Iterator[Relation]:
    here = passage.headings[-1] if passage.headings else title
    for match in _LINK.finditer(passage.text):
        yield Relation(here, "links to", match[1], f"link to {match[2]}")
    for match in _WIKI_TARGET.finditer(passage.text):
        yield Relation(here, "links to", match[1].strip(), "link")


def _said(sentence: str) -> Iterator[Relation]:
    """Yield what the verbs of a sentence say of the names, or the phrases, beside them."""
    kinds = list(_VERBS)
    spoken = list(_SAID.finditer(sentence))
    for place, match in enumerate(spoken):
        start = spoken[place - 1].end() if place else 0
        end = spoken[place + 1].start() if place + 1 < len(spoken) else len(sentence)
        subject = _last(sentence[start : match.start()])
        others = _next(sentence[match.end() : end])
        kind = kinds[int((match.lastgroup or "v0")[1:])]
        yield from (Relation(subject, kind, each, sentence) for each in others if subject)


def _prose(text: str) -> str:
    """Return a text without its code and its tables."""
    lines = _FENCED.sub("\n\n", text).split("\n")
    return "\n".join("" if line.lstrip().startswith("|") else line for line in lines)


def _last(before: str) -> str:
    """Return the name that stands right before a verb, else the phrase with an article."""
    phrase = _PHRASE_BEFORE.search(before)
    names = names_in(f"_ {before[-_NEAR:]}")
    if names and (not phrase or before.rfind(names[-1]) >= phrase.start(1)):
        return names[-1]
    return _trimmed(phrase[1]) if phrase else ""


def _next(after: str) -> list[str]:
    """Return the names behind a verb, up to the end of the clause, else the first phrase."""
    clause = _CLAUSE_ENDS.split(after)[0]
    names = names_in(f"_ {clause}")
    if names and clause.find(names[0]) < _NEAR:
        return names[:4]
    phrase = _PHRASE_AFTER.match(clause)
    return [told] if phrase and phrase[1] and (told := _trimmed(phrase[1])) else []


def _trimmed(phrase: str) -> str:
    """Return a phrase up to the first word that does not belong to a name."""
    words: list[str] = []
    for word in phrase.split():
        if word.lower() in _ENDS:
            break
        words.append(word)
    return " ".join(words)
