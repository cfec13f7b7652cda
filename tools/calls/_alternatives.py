"""Which tool can stand in for which, worked out from their definitions alone (RE-08a). Pure."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from daruma.tools.calls._tool import Effect, Tool

# --- The words that tools are named and described with, and which of their verbs mean the same.

_VERBS = {
    "search": "search find lookup look query retrieve seek grep",
    "read": "read get fetch load download view show open cat inspect scrape crawl extract",
    "list": "list ls browse enumerate",
    "create": "create add insert new make write save store upload generate",
    "update": "update edit modify change replace set patch rename move",
    "delete": "delete remove drop clear purge cancel revoke",
    "send": "send post notify publish reply pay charge",
    "run": "run execute exec start launch invoke call",
}
_ACTIONS = {verb: action for action, verbs in _VERBS.items() for verb in verbs.split()}

_LOOKING = frozenset({"search", "read", "list"})

_FILLING = """
a an and any are as at be by can for from given has if in into is it its of on one or that the
then there this to tool use used uses using was what when where which will with you your return
"""
_EMPTY = frozenset(_FILLING.split())


def words(text: str) -> Iterator[str]:
    """Yield the words of a name or a text in lower case, a plural as its singular."""
    for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+", text):
        word = part.lower()
        yield word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


def terms(text: str) -> list[str]:
    """Return the words that tell something, verbs of one action as that action."""
    return [_ACTIONS.get(word, word) for word in words(text) if word not in _EMPTY]


def things(text: str) -> set[str]:
    """Return what a text is about: its telling words without the verbs."""
    return {term for term in terms(text) if term not in _VERBS}


@cache
def kind_of_action(name: str) -> str:
    """Return what a tool does by the first verb of its name that is known; empty for none.

    Searching, reading and listing are all looking: one may do for the other.
    """
    action = next((_ACTIONS[word] for word in words(name) if word in _ACTIONS), "")
    return "look" if action in _LOOKING else action


# --- Which tool can stand in for which, worked out from their definitions alone (RE-08a). Pure.

MOST = 3
"""Stand-ins of one tool that are named."""

_ALIKE = 0.12
"""The least likeness, a cosine, of two tools whose names say that they do the same."""
_ALIKE_UNSAID = 0.3
"""The same where a name does not say what its tool does. Both are from the tests' tools."""

_NAME_WEIGHT = 3
"""A word of the name counts as much as so many of the description."""
_READ = 60
"""Words of a description that count: what follows is mostly about arguments."""

_STRENGTH: Mapping[Effect, int] = {"none": 0, "workspace": 1, "external": 2}

_Vector = Mapping[str, float]


def stand_ins(tools: Sequence[Tool]) -> Mapping[str, tuple[str, ...]]:
    """Return at most three stand-ins for each tool, the best first; none for one without a like.

    A stand-in never has a stronger effect, its promotions included: a read that failed is not
    replaced by a write. It does the same kind of thing, to something that both speak of.
    """
    return {name: names[:MOST] for name, names in ranked(tools).items()}


def ranked(tools: Sequence[Tool]) -> Mapping[str, tuple[str, ...]]:
    """Return all stand-ins for each tool, the best first."""
    vectors = _vectors(tools)
    by_name = {tool.name: tool for tool in tools}
    strength = {tool.name: _strength(tool, by_name) for tool in tools}
    found: dict[str, tuple[str, ...]] = {}
    for tool in tools:
        scores = {
            other.name: _likeness(tool, other, vectors)
            for other in tools
            if other is not tool and strength[other.name] <= _STRENGTH[tool.effect]
        }
        fitting = [name for name, score in scores.items() if score > 0]
        found[tool.name] = tuple(sorted(fitting, key=scores.__getitem__, reverse=True))
    return found


def _likeness(tool: Tool, other: Tool, vectors: Mapping[str, _Vector]) -> float:
    """Return how well one fits in the other's place, 0 where it does not."""
    own, their = kind_of_action(tool.name), kind_of_action(other.name)
    if own and their and own != their:
        return 0.0
    if not _about(tool) & _about(other):
        return 0.0
    theirs = vectors[other.name]
    alike = sum(weight * theirs.get(term, 0.0) for term, weight in vectors[tool.name].items())
    needed = _ALIKE if own and their else _ALIKE_UNSAID
    return alike * _suited(tool, other) if alike >= needed else 0.0


def _about(tool: Tool) -> set[str]:
    return things(tool.name) | things(tool.description)


def _suited(tool: Tool, other: Tool) -> float:
    """Return how much of what the other needs the one's arguments could give, from 0.5 to 1."""
    given = tool.parameters.get("properties", {})
    wanted = other.parameters.get("properties", {})
    needed = other.parameters.get("required", ())
    types = {str(each.get("type")) for each in given.values()}
    met = sum(name in given or str(wanted.get(name, {}).get("type")) in types for name in needed)
    return 0.5 + 0.5 * met / len(needed) if needed else 1.0


def _strength(tool: Tool, by_name: Mapping[str, Tool]) -> int:
    """Return the strongest effect that a call of a tool may come to have by promotion."""
    seen: list[str] = []
    strongest = 0
    while tool.name not in seen:
        seen.append(tool.name)
        strongest = max(strongest, _STRENGTH[tool.effect])
        target = tool.canonical.promote_to if tool.canonical else None
        tool = by_name.get(target or "", tool)
    return strongest


def _vectors(tools: Sequence[Tool]) -> Mapping[str, _Vector]:
    counts = {tool.name: _counts(tool) for tool in tools}
    weights = _weights(counts.values())
    return {name: _vector(counted, weights) for name, counted in counts.items()}


def _counts(tool: Tool) -> Counter[str]:
    counted = Counter(dict.fromkeys(terms(tool.name), _NAME_WEIGHT))
    counted.update(terms(tool.description)[:_READ])
    for name in tool.parameters.get("properties", {}):
        counted.update(terms(name))
    return counted


def _weights(counts: Collection[Mapping[str, int]]) -> _Vector:
    """Weigh a term by its rarity: what all tools speak of tells none of them apart."""
    in_tools = Counter(term for counted in counts for term in counted)
    return {term: math.log(1 + len(counts) / number) for term, number in in_tools.items()}


def _vector(counted: Mapping[str, int], weights: _Vector) -> _Vector:
    weighed = {term: (1 + math.log(number)) * weights[term] for term, number in counted.items()}
    length = math.hypot(*weighed.values()) or 1.0
    return {term: weight / length for term, weight in weighed.items()}
