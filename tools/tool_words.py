"""The words that tools are named and described with, and which of their verbs mean the same."""

import re
from collections.abc import Iterator
from functools import cache

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
